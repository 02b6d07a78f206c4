-- The business of a wholesaler, for sysbench: orders, payments and deliveries over eight tables, the mix of a well-known
-- benchmark's writing transactions. One table, the payments' history, has no key. --table-size: articles in each warehouse.
--
--     sysbench orders.lua --tables=4 --table-size=25000 … prepare      --tables: warehouses

sysbench.cmdline.options = {
   tables = {"Warehouses", 4},
   table_size = {"Articles in each warehouse", 25000},
}

local DISTRICTS, CUSTOMERS, OLD_ORDERS, BATCH = 10, 1000, 300, 500

local TABLES = {
   [[CREATE TABLE warehouse (w_id INT NOT NULL PRIMARY KEY, name VARCHAR(10) NOT NULL, ytd DECIMAL(12,2) NOT NULL)]],
   [[CREATE TABLE district (w_id INT NOT NULL, d_id INT NOT NULL, name VARCHAR(10) NOT NULL, ytd DECIMAL(12,2) NOT NULL,
     next_o_id INT NOT NULL, PRIMARY KEY (w_id, d_id))]],
   [[CREATE TABLE customer (w_id INT NOT NULL, d_id INT NOT NULL, c_id INT NOT NULL, surname VARCHAR(20) NOT NULL,
     since DATETIME NOT NULL, balance DECIMAL(12,2) NOT NULL, payments INT NOT NULL, notes VARCHAR(300) NOT NULL,
     PRIMARY KEY (w_id, d_id, c_id), KEY by_name (w_id, d_id, surname))]],
   [[CREATE TABLE stock (w_id INT NOT NULL, i_id INT NOT NULL, quantity INT NOT NULL, ytd INT NOT NULL, orders INT NOT NULL,
     notes VARCHAR(80) NOT NULL, PRIMARY KEY (w_id, i_id))]],
   [[CREATE TABLE orders (w_id INT NOT NULL, d_id INT NOT NULL, o_id INT NOT NULL, c_id INT NOT NULL, entered DATETIME NOT NULL,
     carrier INT, line_count INT NOT NULL, PRIMARY KEY (w_id, d_id, o_id), KEY by_customer (w_id, d_id, c_id, o_id))]],
   [[CREATE TABLE new_order (w_id INT NOT NULL, d_id INT NOT NULL, o_id INT NOT NULL, PRIMARY KEY (w_id, d_id, o_id))]],
   [[CREATE TABLE order_line (w_id INT NOT NULL, d_id INT NOT NULL, o_id INT NOT NULL, number INT NOT NULL, i_id INT NOT NULL,
     delivered DATETIME, quantity INT NOT NULL, amount DECIMAL(8,2) NOT NULL, info CHAR(24) NOT NULL,
     PRIMARY KEY (w_id, d_id, o_id, number))]],
   [[CREATE TABLE history (w_id INT NOT NULL, d_id INT NOT NULL, c_id INT NOT NULL, paid DATETIME NOT NULL,
     amount DECIMAL(8,2) NOT NULL, notes VARCHAR(24) NOT NULL)]],
}

local function text(length)
   return sysbench.rand.string(string.rep("@", length))
end

local function surname(number)
   local parts = {"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}
   return parts[math.floor(number / 100) % 10 + 1] .. parts[math.floor(number / 10) % 10 + 1] .. parts[number % 10 + 1]
end

-- Inserts many rows: `row(number)` is the text of each.
local function fill(con, head, first, last, row)
   for from = first, last, BATCH do
      local rows = {}
      for number = from, math.min(from + BATCH - 1, last) do
         rows[#rows + 1] = row(number)
      end
      con:query("INSERT INTO " .. head .. " VALUES " .. table.concat(rows, ","))
   end
end

local function fill_district(con, w, d)
   con:query(("INSERT INTO district VALUES (%d, %d, '%s', 0, %d)"):format(w, d, text(8), OLD_ORDERS + 1))
   fill(con, "customer", 1, CUSTOMERS, function (c)
      return ("(%d, %d, %d, '%s', NOW(), 0, 0, '%s')"):format(w, d, c, surname(c - 1), text(250))
   end)
   fill(con, "orders", 1, OLD_ORDERS, function (o)
      return ("(%d, %d, %d, %d, NOW(), NULL, 10)"):format(w, d, o, sysbench.rand.uniform(1, CUSTOMERS))
   end)
   fill(con, "new_order", 1, OLD_ORDERS, function (o) return ("(%d, %d, %d)"):format(w, d, o) end)
   fill(con, "order_line", 0, OLD_ORDERS * 10 - 1, function (line)
      local article = sysbench.rand.uniform(1, sysbench.opt.table_size)
      return ("(%d, %d, %d, %d, %d, NULL, 5, 10, '%s')"):format(w, d, math.floor(line / 10) + 1, line % 10 + 1, article, text(24))
   end)
end

function prepare()
   local con = sysbench.sql.driver():connect()
   for _, statement in ipairs(TABLES) do
      con:query(statement)
   end
   for w = 1, sysbench.opt.tables do
      con:query(("INSERT INTO warehouse VALUES (%d, '%s', 0)"):format(w, text(8)))
      fill(con, "stock", 1, sysbench.opt.table_size, function (i)
         return ("(%d, %d, %d, 0, 0, '%s')"):format(w, i, sysbench.rand.uniform(10, 100), text(40))
      end)
      for d = 1, DISTRICTS do
         fill_district(con, w, d)
      end
   end
end

local con

local function order(w, d)
   local lines, articles = sysbench.rand.uniform(5, 15), {}
   for number = 1, lines do
      articles[number] = sysbench.rand.uniform(1, sysbench.opt.table_size)
   end
   table.sort(articles) -- no two orders wait for each other
   con:query(("UPDATE district SET next_o_id = next_o_id + 1 WHERE w_id = %d AND d_id = %d"):format(w, d))
   local o = con:query_row(("SELECT next_o_id - 1 FROM district WHERE w_id = %d AND d_id = %d"):format(w, d))
   local c = sysbench.rand.uniform(1, CUSTOMERS)
   con:query(("INSERT INTO orders VALUES (%d, %d, %d, %d, NOW(), NULL, %d)"):format(w, d, o, c, lines))
   con:query(("INSERT INTO new_order VALUES (%d, %d, %d)"):format(w, d, o))
   for number, article in ipairs(articles) do
      local quantity = sysbench.rand.uniform(1, 10)
      con:query(("UPDATE stock SET quantity = IF(quantity > 20, quantity - %d, quantity + 81), ytd = ytd + %d, orders = orders + 1 "
         .. "WHERE w_id = %d AND i_id = %d"):format(quantity, quantity, w, article))
      con:query(("INSERT INTO order_line VALUES (%d, %d, %d, %d, %d, NULL, %d, %d, '%s')"):format(
         w, d, o, number, article, quantity, quantity * 7, text(24)))
   end
end

local function payment(w, d)
   local amount, c = sysbench.rand.uniform(1, 5000), sysbench.rand.uniform(1, CUSTOMERS)
   con:query(("UPDATE warehouse SET ytd = ytd + %d WHERE w_id = %d"):format(amount, w))
   con:query(("UPDATE district SET ytd = ytd + %d WHERE w_id = %d AND d_id = %d"):format(amount, w, d))
   con:query(("UPDATE customer SET balance = balance - %d, payments = payments + 1 WHERE w_id = %d AND d_id = %d AND c_id = %d"):format(
      amount, w, d, c))
   con:query(("INSERT INTO history VALUES (%d, %d, %d, NOW(), %d, '%s')"):format(w, d, c, amount, text(20)))
end

local function delivery(w, d)
   local where = ("w_id = %d AND d_id = %d"):format(w, d)
   local o = con:query_row("SELECT o_id FROM new_order WHERE " .. where .. " ORDER BY o_id LIMIT 1 FOR UPDATE")
   if o == nil then
      return
   end
   where = where .. " AND o_id = " .. o
   con:query("DELETE FROM new_order WHERE " .. where)
   con:query("UPDATE orders SET carrier = 7 WHERE " .. where)
   con:query("UPDATE order_line SET delivered = NOW() WHERE " .. where)
   local c = con:query_row("SELECT c_id FROM orders WHERE " .. where)
   con:query(("UPDATE customer SET balance = balance + 100 WHERE w_id = %d AND d_id = %d AND c_id = %d"):format(w, d, c))
end

function thread_init()
   con = sysbench.sql.driver():connect()
end

function event()
   local kinds = {order, order, order, order, payment, payment, payment, payment, delivery, delivery}
   local kind = kinds[sysbench.rand.uniform(1, #kinds)]
   con:query("BEGIN")
   kind(sysbench.rand.uniform(1, sysbench.opt.tables), sysbench.rand.uniform(1, DISTRICTS))
   con:query("COMMIT")
end

function thread_done()
   con:disconnect()
end
