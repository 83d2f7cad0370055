// A small web application, run under dd-trace as it is published: a server span, a
// call of a database with an error now and then, and work within the process.
const tracer = require('dd-trace').init({ plugins: false })
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

async function user (port, number) {
  for (let i = 0; i < 50; i++) {
    await get(`http://127.0.0.1:${port}/order/${(number + i) % 5}`)
  }
}

server.listen(0, '127.0.0.1', async () => {
  const { port } = server.address()
  await Promise.all([0, 1, 2, 3].map(number => user(port, number)))
  server.close()
  setTimeout(() => process.exit(0), 4000) // the tracer sends every two seconds
})
