// Publishes spans until standard input ends, then closes the client and prints its statistics as JSON.
//
// Arguments: folder of the library, socket, service, spans per second, maximum number of kept bytes, maxAge and maxBackoff
// in ms.
const [library, socket, service, rate, kept, maxAge, maxBackoff] = process.argv.slice(2)
const { Client, Key, TOP_LEVEL } = require(library)

const SLOT_MILLIS = 50

const client = new Client(
  { service, env: 'kills' },
  {
    socket,
    name: service,
    maxBuffer: 32 << 20,
    maxKept: Number(kept),
    maxAgeMillis: Number(maxAge),
    maxBackoffMillis: Number(maxBackoff),
  },
)
const published = {}
const begun = performance.now()
let offered = 0

function publish() {
  const since = performance.now() - begun
  const name = `GET /s/${Math.floor(since / SLOT_MILLIS)}`
  const labels = { service, operation: 'http.request', resource: name, type: 'web', kind: 'server' }
  const keys = [200, 201, 202].map((status) => new Key({ ...labels, http_status: status }))
  const now = Date.now()
  const end = [Math.floor(now / 1000), (now % 1000) * 1e6]
  for (; offered < Math.floor((since / 1000) * Number(rate)); offered++) {
    if (client.publish(keys[offered % 3], 1e6 * (1 + (offered % 1000)), end, TOP_LEVEL)) {
      published[name] = (published[name] ?? 0) + 1
    }
  }
}

const timer = setInterval(publish, 10)
process.stdin.resume()
process.stdin.on('end', async () => {
  clearInterval(timer)
  await client.close(60_000)
  const { ambiguous, unconfirmed, lost, buffered } = client.stats()
  const all = Object.values(lost).reduce((total, n) => total + n, buffered)
  console.log(JSON.stringify({ published, ambiguous, died: unconfirmed, lost: all }))
})
