// Package call sends requests and waits for their responses, any number at a time, over a connection that is
// kept open by package reconnect.
//
// # Usage
//
//	client, err := call.New(&call.Options[uint64]{ID: responseID}) // responseID finds the ID in a response
//	if err != nil {
//		return err
//	}
//	c, err := reconnect.New(&dialer.WebSocket{URL: "wss://api.example/v1"}, &reconnect.Options{
//		Layers: []*reconnect.Layer{client.Layer()},
//	})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//
//	id := client.Next()
//	response, err := client.Do(ctx, call.Request[uint64]{
//		ID:      id,
//		Message: conn.TextMessage(fmt.Sprintf(`{"id":%d,"method":"balance"}`, id)),
//	})
//
// Responses do not reach the reader of the Conn; all other messages do. The program must read these, by
// [reconnect.Conn.Messages] or OnMessage, or the inbox fills up. If the peer sends only responses, set
// [reconnect.InboxDiscard].
//
// # How a request ends
//
// A request ends exactly once, in one of these ways:
//
//   - with its response: the first message with the same ID from the session that sent the request, even
//     before the write returns.
//   - with a [*LostError], immediately when that session ends. (A session that Conn.Redial or a rotation closes
//     gracefully ends after the close handshake.)
//   - with an [*Error]: the context or the Conn is done, or the request was rejected.
//
// While no session is ready, an unsent request waits for the next session if Options.WhenDown of the Conn says
// so of Write, and otherwise fails immediately with a LostError.
//
// A Repeatable request does not fail with its session. It is sent again in the next session, under the same ID,
// until it has its response or its context is done. Requests are repeated in their original order, before new
// requests, so an old "set x" does not overtake a newer one. Only a request with [Request].Session does not
// wait for others.
//
// While one session replaces another, the old session receives responses until it ends, and new requests use
// the new one. A Repeatable request without a response is then sent again in the new session, after the
// requests that the new session has sent already.
//
// # Late responses and IDs
//
// An ID belongs to its request until the request ends. If the context of a request that may have been sent is
// done, the ID stays reserved until its session responds or ends: a new request with this ID is rejected with
// ErrIDInUse, because the old response would look like its own. Beyond Options.InFlight reserved IDs the oldest
// is forgotten.
//
// A response that no request of its session waits for is late: it is counted, passed to Options.Late, and
// dropped. So is a second response to a request, unless a new request has the ID by then. IDs that never
// repeat, such as those of Client.Next, avoid all of this. A message that only marks the last response, such as
// complete in graphql-ws, is late as well: ignore it in Options.Late, or make Options.ID report false for it,
// so that it goes to the reader of the Conn.
//
// If anything else on the same Conn has IDs, such as another Client, these must look different, for instance by
// a prefix, and Options.ID must report false for them. Requests with a stream of responses are not supported.
//
// # Deadlines
//
// The peer is not notified when the context of a request is done. To let an overloaded peer drop such requests,
// put into the message how long you will wait, as in deadline_test.go. This limit is too long if the request
// waited for a session, or is repeated.
//
// # Shutdown
//
// [reconnect.Conn.Shutdown] waits for queued messages, but not for responses. To let requests finish, first
// wait until your calls of Do have returned.
//
// # Cost
//
// A Do allocates two objects and the data of its response, and starts no goroutine or timer.
package call
