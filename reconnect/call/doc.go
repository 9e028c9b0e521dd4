// Package call asks questions and waits for their answers, any number at a time, over a
// connection that is kept open by package reconnect.
//
// # Usage
//
//	questions, err := call.New(&call.Options[uint64]{ID: answerID}) // answerID finds the id in an answer
//	if err != nil {
//		return err
//	}
//	c, err := reconnect.New(&dialer.WebSocket{URL: "wss://api.example/v1"}, &reconnect.Options{
//		Layers: []*reconnect.Layer{questions.Layer()},
//	})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//
//	id := questions.Next()
//	answer, err := questions.Do(ctx, call.Request[uint64]{
//		ID:      id,
//		Message: conn.TextMessage(fmt.Sprintf(`{"id":%d,"method":"balance"}`, id)),
//	})
//
// [Client.Do] sends the message and returns the answer. The answers do not reach the reader of the
// Conn; all other messages do. Somebody has to read those, or the inbox fills up: by
// [reconnect.Conn.Messages] or OnMessage, or with the policy [reconnect.OverflowDiscard].
//
// # How a question ends
//
// Exactly once, in one of these ways. ([Unsent] tells whether an error means that not a byte was
// sent, so that it does no harm to ask again.)
//
//   - With its answer: the first message with the same id that comes by the session which was asked.
//   - With a [*LostError], at the instant at which that session ends. FateDropped: not a byte was
//     sent. FateUnknown: the peer may have done what the question asks for. (A session that we
//     end politely, by Conn.Redial or a rotation, ends after the close handshake.)
//   - With an [*Error], because the context or the Conn has ended, or because the question was
//     refused: [ErrTooMany], [ErrIDInUse], [ErrInCallback].
//
// A question that was not sent is treated as a message of Conn.Write: without a session it fails at
// once, or waits for the next one, as Options.WhenDown of the Conn says.
//
// A question that is Repeatable goes again instead, by the next session and under the same id, as
// often as it takes until its context ends. Those that go again come first, in the order in which
// they were asked, and new ones behind them. So a newer "set x" is not overtaken by an older one
// that goes again.
//
// While one session replaces another (see [reconnect.Rotation]) the old one goes on answering its
// questions until it ends, and new questions go by the new one. A Repeatable question that the
// old one has not answered by then goes again by the new one, after what was asked there meanwhile.
//
// # Late answers, and ids
//
// An id belongs to its question until that has ended. If the context ends a question that may
// have been sent, the id is reserved for as long as its session lives and has not answered it: a
// new question with it is refused with ErrIDInUse, because the answer to the old one would
// look like its own. As many ids are remembered as questions may be in flight; if there are more,
// the oldest is forgotten, and Stats.Forgotten counts it. Ids that never repeat,
// as those of [Client.Next], need none of this.
//
// An answer that no question of its session waits for is late: it is counted, given to
// Options.Late, and goes no further. That holds for the second answer of a peer that answers
// twice, too, unless a new question has the same id by then: an id is free when its question has
// its answer. Ids that never repeat help here as well.
//
// If something else on the same Conn has ids, such as another Client, its ids must look
// different, for instance by a prefix, and Options.ID must report false for them. Streams of many
// answers to one question are not for this package.
//
// # Shutdown
//
// [reconnect.Conn.Shutdown] waits for messages that are queued, and not for answers. To let
// questions end before it, wait until your calls of Do have returned.
//
// # Cost
//
// A Do allocates two objects, and the data of its answer. It has no goroutine and no timer. A
// Client without questions keeps an empty map.
//
// # Where others fail, and what this does
//
//	what goes wrong                           where                                     here
//	----------------------------------------  ----------------------------------------  ------------------------------------
//	an answer comes before the question is    clients that register a question after    the question is registered before it
//	registered, and is thrown away            the write                                 is written
//	a question that timed out stays           longhorn/longhorn #13553, bug-ops/mcpls   it is forgotten when Do returns; the
//	registered for ever                       #239, modelcontextprotocol/java-sdk #287  memory of its id is bounded
//	a late answer is matched to a newer       clients whose ids are small numbers or    the id is reserved until the answer,
//	question with the same id                 names, once a question has timed out      or the end of the session
//	an answer by the new connection is        clients that match by the id alone        the key is session and id
//	matched to a question of the old one
//	a lost connection lets questions wait     hand-written clients that only look at    a LostError at the instant of the
//	for their timeout                         timeouts                                  loss
//	"connection lost" does not say whether    go-ethereum's rpc (one error for all      LostError.Fate; Unsent
//	it is safe to ask again                   that is under way)
//	all is asked again after a reconnect,     clients with a retry of everything        only what is Repeatable goes again
//	payments too
//	a planned reconnect fails questions       grpc/grpc-go #2767, mended by #2919       the old session is read until it is
//	                                                                                    drained; new questions go by the new
//	a question in the message handler waits   apache/pulsar-client-go #1310 and #375    ErrInCallback, at once; in the
//	for an answer that nobody reads                                                     goroutine that pulls messages it works
//	a second question with an id under way    graphql-ws closes with 4409               ErrIDInUse, nothing is sent
//	ends the connection
package call
