// A server by Node's ws: node echo.mjs PORT. It does what echo.py does.
import { WebSocketServer } from "../../calls/graphql/node_modules/ws/wrapper.mjs"

const options = { host: "127.0.0.1", port: Number(process.argv[2]), perMessageDeflate: true, maxPayload: 1 << 30 }
new WebSocketServer(options).on("connection", (ws) => {
	const pings = setInterval(() => ws.ping(), 10)
	ws.on("message", (data, isBinary) => {
		const text = isBinary ? "" : data.toString()
		if (text === "ping") {
			ws.once("pong", () => ws.send("ponged"))
			ws.ping("p")
		} else if (text.startsWith("close ")) {
			const [, code, reason] = text.split(" ")
			ws.close(Number(code), reason)
		} else {
			ws.send(data, { binary: isBinary })
		}
	})
	ws.on("close", (code, reason) => {
		clearInterval(pings)
		console.log("closed", code, reason.toString())
	})
})
