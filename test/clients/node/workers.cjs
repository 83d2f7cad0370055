// Runs a server in four processes. They end when the first process gets SIGTERM.
const cluster = require('node:cluster')

exports.run = (start) => {
  if (!cluster.isPrimary) {
    start()
    return
  }
  for (let i = 0; i < 4; i++) cluster.fork()
  process.on('SIGTERM', () => {
    for (const worker of Object.values(cluster.workers)) worker.process.kill('SIGTERM')
  })
}

// Ends a worker when its requests have ended.
exports.endWith = (close) => {
  process.on('SIGTERM', async () => {
    await close()
    cluster.worker.disconnect()
  })
}
