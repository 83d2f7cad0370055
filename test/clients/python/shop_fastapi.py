from fastapi import FastAPI, HTTPException

app = FastAPI()


@app.get("/carts/{cart}")
async def get_cart(cart: int):
    if cart == 7:
        raise HTTPException(500)
    return {"cart": cart}


@app.get("/orders")
def get_orders():
    return []
