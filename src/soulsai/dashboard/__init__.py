"""The live page: what runs are doing, served to a browser. It reads what runs write, and disturbs none of them."""
