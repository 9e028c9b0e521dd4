// Package current holds the present client: the one that another library has made over the present
// connection of a reconnect.Run, such as a paho client, an amqp091 channel, a gRPC stream or a pgx
// connection that listens. The rest of the program asks for the client each time it needs one, and never
// gets a client whose connection is known to be lost.
//
//	var channels current.Of[*amqp.Channel]
//
//	err := reconnect.Run(ctx, dial, func(ctx context.Context, c *amqp.Connection, s *reconnect.Session) error {
//		ch, err := c.Channel()
//		if err != nil {
//			return err
//		}
//		closed := c.NotifyClose(make(chan *amqp.Error, 1))
//		s.Ready()
//		ctx, remove := channels.Set(ctx, ch) // from here on Wait returns ch
//		defer remove()
//		select {
//		case err := <-closed:
//			return err
//		case <-ctx.Done(): // Run is to end, or Fail was called
//			return context.Cause(ctx)
//		}
//	}, nil)
//	channels.End(err)
//
// Anywhere else:
//
//	ch, err := channels.Wait(ctx) // returns at once if there is a channel
//	if err != nil {
//		return err // ctx or Run has ended
//	}
//	if err := ch.PublishWithContext(ctx, ...); errors.Is(err, amqp.ErrClosed) {
//		channels.Fail(ch, err) // Wait does not return ch any more, and the session ends
//	}
//
// If a library has one client object for all sessions, Set is called with the same client in each. Use
// WaitSession then, whose fail ends only the session in which the client has failed.
//
// Run closes the client, and waits for that. Some clients wait in Close for an answer of the
// server, which may be gone: return a type from dial whose Close has a limit, such as that of
// CloseDeadline of amqp091. Trace.SlowHandler reports a Close that takes 5 s.
//
// Whether a message whose publish failed may be sent again is for the program to decide: the server may
// have it.
package current
