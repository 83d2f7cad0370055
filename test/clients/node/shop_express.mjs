import { promisify } from 'node:util'
import express from 'express'
import { endWith, run } from './workers.cjs'

run(() => {
  const app = express()
  app.get('/orders', (_, response) => response.send('orders'))
  app.get('/carts/:cart', (request, response) => response.status(request.params.cart === '7' ? 500 : 200).send('cart'))
  const [host, port] = process.env.ADDRESS.split(':')
  const server = app.listen(Number(port), host)
  endWith(promisify(server.close.bind(server)))
})
