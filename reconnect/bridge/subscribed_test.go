package bridge_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
	"github.com/redial-go/redial/reconnect/subscription"
)

// lag is how long a subscription takes to begin. In the middle of it the exchange publishes a number,
// which only a fetch brings.
const lag = time.Second

// exchange has the stream "a", and one client. A request is "subscribe ID a", and its answer
// "confirmed ID".
type exchange struct {
	mu         sync.Mutex // guards the following fields
	last       uint64     // the newest number
	client     *conntest.Fake
	subscribed bool
}

// Dial implements [reconnect.Dialer].
func (x *exchange) Dial(context.Context) (conn.Conn, error) {
	client, server := conntest.Pair(nil)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.client, x.subscribed = server, false
	go x.serve(server) // ends with the connection
	return client, nil
}

func (x *exchange) serve(c *conntest.Fake) {
	for {
		m, err := c.Read(nil)
		if err != nil {
			return
		}
		id := strings.Fields(string(m.Data))[1]
		time.AfterFunc(lag/2, x.publish)
		time.AfterFunc(lag, func() {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.subscribed = x.subscribed || c == x.client
			_ = c.Write(conn.TextMessage("confirmed " + id))
		})
	}
}

func (x *exchange) publish() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last++
	if x.subscribed {
		_ = x.client.Write(conn.TextMessage(fmt.Sprintf("a %q %d %d", "", x.last, x.last)))
	}
}

// cut ends the connection.
func (x *exchange) cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.subscribed = false
	x.client.CloseNow()
}

func (x *exchange) past(_ context.Context, r bridge.Request[string]) (items []item, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for n := r.After.Offset + 1; n <= x.last; n++ {
		items = append(items, item{Last: n})
	}
	return items, nil
}

// way is a way of subscribing.
type way struct {
	essential, await, mark bool
	late                   bool // the key is added to the Set when the session is ready
	refetch                bool // Refetch is called when the subscription is confirmed
	onSession              bool // without a Set: OnSession sends the request
	answer                 bool // OnSession waits for the answer
	program                bool // without a Set: the program sends the request
}

// seen returns the numbers that the reader has got at the end of the first session, and in the end. The
// exchange publishes 1 while the first session subscribes, 2 while there is no connection, and 3 while
// the second session subscribes.
func (w way) seen(t *testing.T) (first, seen []uint64) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{}
		b, err := bridge.New(&bridge.Options[string, string]{Parse: parseItem, Past: x.past, AwaitSubscribed: w.await})
		require.NoError(t, err)
		require.NoError(t, b.Follow("a", bridge.Cursor{}))
		wait := &backoff.Exponential{Base: time.Minute, Jitter: backoff.JitterNone}
		o := &reconnect.Options{
			MarkRefetch: w.mark,
			Run:         reconnect.RunOptions{Policy: wait},
		}
		request := conn.TextMessage("subscribe 1 a")
		var set *subscription.Set[string]
		switch {
		case w.onSession:
			o.OnSession = func(_ context.Context, o *reconnect.Opening) error {
				err := o.Write(request)
				if err == nil && w.answer {
					_, err = o.Read()
				}
				return err
			}
		case !w.program:
			set, err = subscription.New(&subscription.Options[string]{
				Encode: func(r *subscription.Request[string]) (conn.Message, error) {
					return conn.TextMessage(fmt.Sprint("subscribe ", r.ID, " ", r.Keys[0])), nil
				},
				Answer: func(m reconnect.Message) (a subscription.Answer[string], ok bool) {
					a.ID, ok = strings.CutPrefix(string(m.Data), "confirmed ")
					return a, ok
				},
				Essential: func(string) bool { return w.essential },
			})
			require.NoError(t, err)
			o.Layers = []*reconnect.Layer{set.Layer()}
			if !w.late {
				set.Add("a")
			}
		}
		feed, err := reconnect.New(x, o)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			for e, err := range b.Events(ctx, feed) {
				switch {
				case err != nil:
				case e.Kind == bridge.EventLive || e.Kind == bridge.EventPast:
					seen = append(seen, e.Last)
				case w.refetch && strings.HasPrefix(string(e.Message.Data), "confirmed"):
					b.Refetch("a", e.Message.Session)
				}
			}
		})
		for session := range 2 {
			require.NoError(t, feed.AwaitReady(ctx))
			if w.program {
				require.NoError(t, feed.Write(ctx, request))
			} else if w.late && session == 0 {
				set.Add("a")
				require.NoError(t, set.Wait(ctx, "a"))
				if w.refetch {
					b.Refetch("a", 0)
				}
			}
			time.Sleep(10 * lag)
			if session == 0 {
				synctest.Wait()
				first = slices.Clone(seen)
				x.cut()
				synctest.Wait()
				x.publish()
			}
		}
		stop()
		running.Wait()
		feed.Close()
		<-feed.Done()
		x.cut()
	})
	return first, seen
}

// The table of the package documentation: with what it says nothing is missing, and with less
// something is.
func TestTheTableOfSubscriptions(t *testing.T) {
	for name, row := range map[string]struct {
		right way
		wrong map[string]way
	}{
		"in OnSession with the answer awaited": {
			right: way{onSession: true, answer: true},
			wrong: map[string]way{"not awaited": {onSession: true}},
		},
		"by a Set, all keys Essential": {
			right: way{essential: true},
			wrong: map[string]way{"not Essential": {}},
		},
		"by a Set, not all keys Essential": {
			right: way{await: true, mark: true},
			wrong: map[string]way{"without AwaitSubscribed": {mark: true}, "without MarkRefetch": {await: true}},
		},
		"a key that is added during a session": {
			right: way{await: true, mark: true, late: true, refetch: true},
			wrong: map[string]way{"without Refetch": {await: true, mark: true, late: true}},
		},
		"an Essential key that is added during a session": {
			right: way{essential: true, late: true, refetch: true},
		},
		"by the program": {
			right: way{program: true, await: true, refetch: true},
			wrong: map[string]way{"without Refetch": {program: true, await: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, all := row.right.seen(t)
			require.Equal(t, []uint64{1}, first)
			require.Equal(t, []uint64{1, 2, 3}, all)
			for what, w := range row.wrong {
				first, all := w.seen(t)
				t.Logf("%s: %v, and %v in the end", what, first, all)
				require.False(t, len(first) == 1 && len(all) == 3, what)
			}
		})
	}
}
