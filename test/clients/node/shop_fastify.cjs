const { FastifyOtelInstrumentation } = require('@fastify/otel')
const fastify = require('fastify')
const { endWith, run } = require('./workers.cjs')

run(async () => {
  const app = fastify()
  await app.register(new FastifyOtelInstrumentation().plugin())
  app.get('/orders', async () => 'orders')
  app.get('/carts/:cart', async (request, reply) => {
    reply.code(request.params.cart === '7' ? 500 : 200)
    return 'cart'
  })
  const [host, port] = process.env.ADDRESS.split(':')
  await app.listen({ host, port: Number(port) })
  endWith(() => app.close())
})
