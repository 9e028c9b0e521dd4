// Package current holds the current client: the one that another library has made over the current connection
// of a reconnect.Run, such as an amqp091 channel or a gRPC stream. The rest of the program asks for the client
// whenever it needs one, and never gets one whose connection is known to be lost.
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
//	ch, err := channels.Wait(ctx) // returns immediately if there is a channel
//	if err != nil {
//		return err // ctx or Run is done
//	}
//	if err := ch.PublishWithContext(ctx, ...); errors.Is(err, amqp.ErrClosed) {
//		channels.Fail(ch, err) // Wait does not return ch any more, and the session ends
//	}
//
// For a library with one client object for all sessions use [Of.WaitSession].
//
// Run closes the client and waits for that, but some clients wait in Close for the server, which may be gone.
// Then make dial return a type whose Close has a limit, such as CloseDeadline of amqp091. Trace.SlowHandler
// reports a Close that takes 5 s.
//
// A message whose publish failed may have reached the server; the program must decide whether to send it again.
package current
