#!/usr/bin/env bash
# A data engineer with Spark wants to know which tables of the fleet make which replica late, and
# the changes of a table as Parquet.
#   scripts/new_user/data_engineer.sh CHECKOUT WORK      # needs binlag[spark]; leaves fleet/ and cart_items.parquet in WORK
set -euo pipefail
checkout=$1 work=$2
mkdir -p "$work"

binlag fleet "$checkout/examples/fleet.yaml" --master 'local[2]' --output "$work/fleet" --report "$work/fleet.html"

python3 - "$checkout" "$work" <<'PYTHON'
import sys


from applier.forecast.spark_session import session
from applier.forecast.spark_source import register

checkout, work = sys.argv[1:]
spark = session("local[2]")
register(spark)
reader = spark.read.format("binlog").option("table", "shop.cart_item")
reader.load(f"{checkout}/demo/binlog.000001").write.mode("overwrite").parquet(f"{work}/cart_items.parquet")
print(spark.read.parquet(f"{work}/cart_items.parquet").groupBy("type").count().collect())
spark.stop()
PYTHON
echo "see $work/fleet.html and $work/cart_items.parquet"
