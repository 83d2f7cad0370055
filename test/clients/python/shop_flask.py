from flask import Flask, abort

app = Flask(__name__)


@app.get("/carts/<int:cart>")
def get_cart(cart):
    if cart == 7:
        abort(500)
    return {"cart": cart}


@app.get("/orders")
def get_orders():
    return []
