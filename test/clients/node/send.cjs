// Sends five batches, one after the other, with a client of the native protocol.
const { setTimeout: sleep } = require('node:timers/promises')
const { Client, ERROR, Key, TOP_LEVEL } = require('@spanstatsd/opentelemetry')

const now = () => [Math.floor(Date.now() / 1000), (Date.now() % 1000) * 1e6]

async function main() {
  const client = new Client({ service: 'shop', env: 'test', lang: 'nodejs' }, { socket: process.argv[2], maxAgeMillis: 50 })
  const labels = { service: 'shop', operation: 'http.server.request', type: 'web', kind: 'server' }
  const keys = Array.from({ length: 20 }, (_, i) => new Key({ ...labels, resource: `GET /${i}` }))
  for (let i = 0; i < 5; i++) {
    for (const key of keys) client.publish(key, 1_500_000, now(), TOP_LEVEL)
    client.publish(keys[0], 5_000_000_000, now(), ERROR | TOP_LEVEL)
    await sleep(300)
  }
  const isFlushed = await client.flush(10_000)
  client.publish(keys[0], 1, now())
  const isClosed = await client.close()
  const { published, sent, unsettled } = client.stats()
  console.log(client.stats())
  process.exitCode = isFlushed && isClosed && published === 106 && sent === 106 && !unsettled ? 0 : 1
}

main()
