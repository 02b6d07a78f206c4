"""`python -m applier` is `binlag`."""

from applier.cli.main import main

if __name__ == "__main__":
    main()
