// A small web application for the published dd-trace: a server span, a database call with occasional
// errors, and internal work.
const tracer = require('dd-trace').init({ plugins: false })
const fs = require('fs')
const http = require('http')

const server = http.createServer((req, res) => {
  tracer.trace('http.request', { resource: 'GET ' + req.url, type: 'web', tags: { 'span.kind': 'server' } }, span => {
    let status = 200
    tracer.trace('postgres.query', { service: 'shop-db', resource: 'orders of ' + req.url, type: 'db', tags: { 'span.kind': 'client', 'out.host': '10.1.2.3:5432', 'db.name': 'orders' } }, query => {
      if (req.url.endsWith('3')) {
        query.setTag('error', new Error('no such order'))
        status = 500
      }
    })
    tracer.trace('render', {}, () => {})
    span.setTag('http.status_code', String(status))
    res.statusCode = status
    res.end()
  })
})

function get (url) {
  return new Promise((resolve, reject) => {
    http.get(url, res => { res.resume(); res.on('end', resolve) }).on('error', reject)
  })
}

async function user (port, number, each) {
  for (let i = 0; i < each; i++) {
    await get(`http://127.0.0.1:${port}/order/${(number + i) % 5}`)
  }
}

function load (port, each) {
  return Promise.all([0, 1, 2, 3].map(number => user(port, number, each)))
}

// measure prints the cost of a request for this process after a warm-up.
async function measure (port, each) {
  await load(port, each)
  const before = process.cpuUsage()
  await load(port, each)
  const { user, system } = process.cpuUsage(before)
  console.log('cpu us a request: ' + (user + system) / (4 * each))
  process.exit(0)
}

// odd creates a span per line of a file, with tags as key=value and numbers as key#=value.
function odd (file) {
  const all = tracer.startSpan('odd.all')
  fs.readFileSync(file, 'utf8').trimEnd().split('\n').forEach((line, row) => {
    const span = tracer.startSpan('odd', { childOf: all, tags: { 'resource.name': `row ${row}` } })
    for (const tag of line.split('\t')) {
      const [key, value] = [tag.slice(0, tag.indexOf('=')), tag.slice(tag.indexOf('=') + 1)]
      if (key === 'service') span.setTag('service.name', value)
      else if (key === 'type') span.setTag('span.type', value)
      else if (key.endsWith('#')) span.setTag(key.slice(0, -1), Number(value))
      else span.setTag(key, value)
    }
    span.finish()
  })
  all.finish()
}

server.listen(0, '127.0.0.1', async () => {
  const { port } = server.address()
  if (process.env.SHOP_MEASURE) await measure(port, Number(process.env.SHOP_MEASURE))
  await load(port, 50)
  if (process.env.SHOP_ODD) odd(process.env.SHOP_ODD)
  server.close()
  // The tracer sends traces every two seconds and statistics every ten.
  setTimeout(() => process.exit(0), process.env.DD_TRACE_STATS_COMPUTATION_ENABLED === 'true' ? 12000 : 4000)
})
