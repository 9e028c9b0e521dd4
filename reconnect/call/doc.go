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
// [Client.Do] sends the message and returns the answer. Answers do not reach the reader of the Conn;
// all other messages do. The program must read these, by [reconnect.Conn.Messages] or OnMessage, or
// the inbox fills up. If the peer sends answers only, set [reconnect.InboxDiscard].
//
// # How a question ends
//
// A question ends exactly once, in one of these ways:
//
//   - with its answer: the first message with the same id from the session that sent the question.
//   - with a [*LostError], at the instant at which that session ends. FateDropped: not a byte was
//     sent. FateUnknown: the peer may have acted on the question. (A session that Conn.Redial or
//     a rotation ends politely ends after the close handshake.)
//   - with an [*Error]: the context or the Conn has ended, or the question was refused
//     ([ErrTooMany], [ErrIDInUse], [ErrInCallback]).
//
// [Unsent] reports whether an error means that not a byte was sent, so that it does no harm to ask
// again.
//
// While no session is ready, a question fails at once, or waits for the next session, as
// Options.WhenDown of the Conn says of messages.
//
// A Repeatable question does not fail with its session. The question goes again by the next session,
// under the same id, until it has its answer or its context ends. Questions that go again are sent
// first, in the order in which they were asked; new questions follow. So an old "set x" that goes
// again does not overtake a newer one. Exception: a question with Request.Session waits for no other
// question. Questions that go again may wait for the end of the hook SessionReady.
//
// While one session replaces another (see [reconnect.Rotation]), the old session answers its questions
// until it ends, and new questions go by the new session. A Repeatable question that the old session
// leaves without an answer goes again by the new session, after the questions that the new session has
// sent already.
//
// # Late answers, and ids
//
// An id belongs to its question until the question ends. If the context ends a question that may have
// been sent, the id stays reserved until its session answers or ends: a new question with the same id
// is refused with ErrIDInUse, because the old answer would look like the new one. As many ids are
// reserved as questions may be in flight. Beyond that the oldest id is forgotten, and Stats.Forgotten
// counts it.
//
// An answer that no question of its session waits for is late: the answer is counted, given to
// Options.Late, and goes no further. A second answer to the same question is late too, unless a new
// question has the id by then. Ids that never repeat, such as the numbers of [Client.Next], avoid all
// of this.
//
// A message that only says that an answer was the last, such as complete in graphql-ws, is late as well: let
// Options.Late ignore it, or let Options.ID report false for it, so that it goes to the reader of the Conn.
//
// If anything else on the same Conn has ids, such as another Client, these ids must look different,
// for instance by a prefix, and Options.ID must report false for them. A question with a stream of
// answers is not for this package.
//
// # Deadlines
//
// The context of a question ends the wait for its answer, and the peer does not learn of it. To let the
// peer drop questions that nobody waits for any more, put into the message how long you will wait:
// deadline_test.go has both sides. There 400 questions come at twice the rate at which the peer can
// answer them, 10 ms each, and each is waited for 98 ms. A peer that does not know this limit works for
// 4.0 s and answers 18 questions in time. A peer that knows the limit works for 2.1 s and answers 209, none
// of them late. The limit in the message is too long if the question waited for a session, or goes again.
//
// # Shutdown
//
// [reconnect.Conn.Shutdown] waits for queued messages, and not for answers. To let questions end
// first, wait until your calls of Do have returned.
//
// # Cost
//
// A Do allocates two objects and the data of its answer, and starts no goroutine and no timer. A
// Client without questions keeps an empty map. After a loss 100,000 questions go again in about ten
// times the time of 10,000 (BenchmarkAllGoAgainAfterALoss).
//
// # Where others fail
//
//	an answer comes before its question is registered (many clients)         registered before the write
//	a question that timed out stays registered (longhorn #13553,             forgotten when Do returns; the
//	modelcontextprotocol/java-sdk #287)                                      memory of ids is bounded
//	a late answer is matched to a new question with the same id              the id is reserved
//	an answer by the new connection is matched to an old question            the key is session and id
//	a lost connection lets questions wait for their timeout                  a LostError at once
//	"connection lost" does not say whether to ask again (go-ethereum's rpc)  LostError.Fate; Unsent
//	all is asked again after a reconnect, payments too                       only Repeatable questions
//	a planned reconnect fails questions (grpc-go #2767)                      the old session is read to its end
//	a question in the message handler waits for ever                         ErrInCallback, at once; Do works in
//	(pulsar-client-go #1310, #375)                                           the goroutine that pulls messages
//	a second question with an id in use ends the connection (graphql-ws)     ErrIDInUse, nothing is sent
package call
