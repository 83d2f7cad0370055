// A small Express application without OpenTelemetry code: NODE_OPTIONS loads the SDK. It shuts down
// gracefully when its standard input ends.
const express = require('express')
const http = require('http')

const app = express()
const statuses = [200, 200, 201, 404, 500]

app.get('/orders/:number', (req, res) => {
  http.get(`${process.env.STOCK_URL}/stock/${req.params.number}`, answer => {
    answer.resume()
    answer.on('end', () => res.status(answer.statusCode).end())
  })
})

app.get('/stock/:number', (req, res) => {
  res.status(statuses[req.params.number % 5]).end()
})

const server = app.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`))
process.stdin.resume()
process.stdin.on('end', () => {
  http.globalAgent.destroy()
  server.close()
  server.closeIdleConnections()
})
