// A CSMS of ocpp-rpc, which checks each message against the schemas of OCPP 2.0.1: node server.mjs PORT LOG.
// It writes each event to the log before it answers.
import { appendFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { RPCServer } from 'ocpp-rpc'

const [port, log] = process.argv.slice(2)
const server = new RPCServer({ protocols: ['ocpp2.0.1'], strictMode: true })
server.auth((accept) => accept())
server.on('client', (client) => {
  let running = 0
  client.on('strictValidationFailure', (event) => appendFileSync(log, `invalid ${JSON.stringify(event.error)}\n`))
  client.handle('BootNotification', async () => {
    globalThis.setTimeout(() => client.call('GetBaseReport', { requestId: 1, reportBase: 'FullInventory' }).catch((err) => appendFileSync(log, `answer ${err.rpcErrorCode}\n`)), 20)
    return { currentTime: new Date().toISOString(), interval: 300, status: 'Accepted' }
  })
  client.handle('TransactionEvent', async ({ params }) => {
    running++
    appendFileSync(log, `event ${params.transactionInfo.transactionId} ${params.seqNo}${running > 1 ? ' beside another' : ''}\n`)
    await setTimeout(3)
    running--
    return {}
  })
})
await server.listen(Number(port), '127.0.0.1')
