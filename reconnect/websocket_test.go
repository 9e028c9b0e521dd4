package reconnect_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// venue is a real WebSocket server on a network in memory, and a dialer that
// goes there.
type venue struct {
	*conntest.Server
	network *conntest.Network
	dialer  *dialer.WebSocket
	start   time.Time
}

const venueAddr = "feed.test:80"

// inVenue runs a test in virtual time. In the end, when every Conn of it is
// closed, no connection may be left open (promise 11).
func inVenue(t *testing.T, h conntest.Handler, test func(t *testing.T, v *venue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		v := &venue{Server: conntest.NewServer(n, venueAddr, h), network: n, start: time.Now()}
		v.dialer = &dialer.WebSocket{URL: "ws://feed.test/v1", DialContext: n.DialContext}
		t.Cleanup(func() {
			if open := n.Open(); open > 0 {
				t.Errorf("connections that the client left open: %d", open)
			}
			v.Close()
			synctest.Wait()
			if left := n.Unclosed(); len(left) > 0 {
				t.Errorf("not closed: %v", left)
			}
		})
		test(t, v)
	})
}

// readAll reads the rest of a message as a server does. When a connection ends inside a
// message coder/websocket may return what came as if it were all: its reader takes the
// io.EOF of the connection for that of the message. So what is doubtful, as the beginning of a
// message, was cut if nothing follows it, and the error says why.
func readAll(ctx context.Context, c *websocket.Conn, message io.Reader, doubtful func(data string) bool) (string, error) {
	data, err := io.ReadAll(message)
	if err == nil && doubtful(string(data)) {
		_, _, err = c.Reader(ctx)
	}
	return string(data), err
}

func (v *venue) now() time.Duration { return time.Since(v.start) }

// open starts a Conn to the venue, to be closed when the test ends.
func (v *venue) open(t *testing.T, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	c, err := reconnect.New(v.dialer, o)
	require.NoError(t, err)
	t.Cleanup(func() { quit(c) })
	return c
}

// ready is open, and waits until a session is ready and the server knows of it.
func (v *venue) ready(t *testing.T, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	c := v.open(t, o)
	require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
	synctest.Wait()
	return c
}

// pipe returns the one live connection.
func (v *venue) pipe(t *testing.T) *conntest.Pipe {
	t.Helper()
	pipes := v.network.Conns(venueAddr)
	require.Len(t, pipes, 1)
	return pipes[0]
}

// Promises 4 and 5: what came between the login and its answer is not lost, and
// after a loss there is a new login.
func TestEachSessionLogsInOverTheWire(t *testing.T) {
	say := func(ctx context.Context, c *websocket.Conn, s string) { c.Write(ctx, websocket.MessageText, []byte(s)) }
	inVenue(t, func(ctx context.Context, c *websocket.Conn, r *http.Request) {
		_, login, _ := c.Read(ctx)
		say(ctx, c, "early")
		say(ctx, c, "hello "+string(login))
		say(ctx, c, "late")
		conntest.Discard(ctx, c, r)
	}, func(t *testing.T, v *venue) {
		var causes []error
		o := run(every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			causes = append(causes, op.Cause)
			if err := op.Write(text("me")); err != nil {
				return err
			}
			for {
				m, err := op.Read()
				if err != nil || string(m.Data) == "hello me" {
					return err
				}
				op.Deliver(m)
			}
		}
		c := v.ready(t, &o)
		wantMessage(t, c, 1, "early")
		wantMessage(t, c, 1, "late")
		v.network.ResetAll(venueAddr)
		require.ErrorIs(t, wantSeam(t, c).Cause, syscall.ECONNRESET)
		time.Sleep(time.Second)
		synctest.Wait()
		wantMessage(t, c, 2, "early")
		wantMessage(t, c, 2, "late")
		require.Len(t, causes, 2)
		require.NoError(t, causes[0])
		require.ErrorIs(t, causes[1], syscall.ECONNRESET)
	})
}

// Promise 8: a connection whose peer has left without a word, at the defaults.
func TestAHalfOpenConnectionIsNoticedAfterThirtySeconds(t *testing.T) {
	inVenue(t, nil, func(t *testing.T, v *venue) {
		o := run(every(time.Hour))
		c := v.ready(t, &o)
		time.Sleep(time.Hour)
		wantNothing(t, c) // the venue is silent, but answers pings
		require.NoError(t, c.Write(t.Context(), text("the last byte")))
		synctest.Wait()
		v.network.StallAll(venueAddr)
		stalled := v.now()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, stalled+30*time.Second, v.now())
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
	})
}

// Promise 8: any byte is life. This server answers no ping, and its message
// comes at one byte in 15 s.
func TestAServerThatSendsIsAliveWithoutPongs(t *testing.T) {
	inVenue(t, conntest.NeverRead, func(t *testing.T, v *venue) {
		v.dialer.Conn.MessageTimeout = -1
		c := v.ready(t, nil)
		message := conntest.Frame{Head: conntest.Fin | conntest.TextFrame, Payload: []byte("at last")}.Bytes()
		for i := range message {
			time.Sleep(15 * time.Second)
			v.pipe(t).Inject(conntest.ToClient, message[i:i+1])
		}
		synctest.Wait()
		require.NotZero(t, c.Stats().Probes)
		wantMessage(t, c, 1, "at last")
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, time.Duration(len(message))*15*time.Second+30*time.Second, v.now())
	})
}

// Promise 11: again and again, since two goroutines meet here.
func TestShutdownTellsTheServer(t *testing.T) {
	const times = 200
	ends := make(chan error, times) // one for each connection
	inVenue(t, func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		_, _, err := c.Read(ctx)
		ends <- err
	}, func(t *testing.T, v *venue) {
		for range times {
			c := v.ready(t, nil)
			require.NoError(t, c.Shutdown(t.Context()))
			require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(<-ends))
			require.Equal(t, net.ErrClosed, c.Err())
			require.Zero(t, v.network.Open())
		}
		require.Zero(t, v.now())
	})
}

// Promise 11: in no state does Close wait for the network. That it leaves nothing,
// see inVenue and TestMain.
func TestCloseCutsWhateverGoesOn(t *testing.T) {
	for state, reach := range map[string]func(*testing.T, *venue, *reconnect.Options) *reconnect.Conn{
		"dialing a black hole": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			v.network.Fault(venueAddr, conntest.Fault{Hang: true})
			return v.open(t, o)
		},
		"handshake without an answer": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			v.Next(conntest.Hang)
			return v.open(t, o)
		},
		"answer that is checked": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			v.Next(conntest.BadAccept)
			return v.open(t, o)
		},
		"opening": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			o.OnSession = func(_ context.Context, op *reconnect.Opening) error { _, err := op.Read(); return err }
			return v.open(t, o)
		},
		"waiting": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			v.network.Fault(venueAddr, conntest.Fault{Refuse: true})
			return v.open(t, o)
		},
		"ready": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn { return v.ready(t, o) },
		"write into a full window": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			c := v.ready(t, o)
			v.pipe(t).Window(conntest.ToServer, 100)
			go c.Write(t.Context(), text(strings.Repeat("x", 10_000)))
			return c
		},
		"ping pending": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			c := v.ready(t, o)
			v.network.StallAll(venueAddr)
			time.Sleep(15 * time.Second)
			return c
		},
	} {
		t.Run(state, func(t *testing.T) {
			inVenue(t, nil, func(t *testing.T, v *venue) {
				o := run(every(time.Hour))
				c := reach(t, v, &o)
				synctest.Wait()
				start := v.now()
				quit(c)
				require.Equal(t, start, v.now())
				require.Zero(t, v.network.Open())
			})
		})
	}
}

// Promise 1, by the network's own account.
func TestThereAreNeverMoreThanTwoConnections(t *testing.T) {
	t.Run("two", func(t *testing.T) { testConnections(t, false, 2) })
	t.Run("OneConnection", func(t *testing.T) { testConnections(t, true, 1) })
}

func testConnections(t *testing.T, one bool, most int) {
	inVenue(t, nil, func(t *testing.T, v *venue) {
		random := rand.New(rand.NewPCG(1, 2))
		v.network.Fault(venueAddr, conntest.Fault{Delay: 300 * time.Millisecond}, conntest.Fault{})
		o := run(every(100 * time.Millisecond))
		o.Run.OneConnection = one
		c := v.open(t, &o)
		for v.now() < time.Minute {
			time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
			late := time.Duration(random.Int64N(int64(time.Second)))
			v.network.Fault(venueAddr, conntest.Fault{Delay: late, IgnoresContext: random.IntN(2) == 0, CompletesAnyway: true})
			v.network.ResetAll(venueAddr)
			c.Kick()
			c.Redial(c.Status().Session, errLost)
		}
		count := v.network.Count(venueAddr)
		require.Greater(t, count.Dials, 30)
		require.LessOrEqual(t, count.MaxDialing, most)
		require.LessOrEqual(t, count.MaxOpen, most)
		require.LessOrEqual(t, count.MaxHeld, most)
	})
}

// The data of a message belongs to the handler only until it returns, and who
// keeps it is found out.
func TestPoisonFindsAHandlerThatKeepsItsMessage(t *testing.T) {
	inVenue(t, conntest.Feed(time.Second, func(i int) []byte { return fmt.Append(nil, "message ", i) }), func(t *testing.T, v *venue) {
		var kept []byte
		var seen notes
		c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
			c, err := v.dialer.Dial(ctx)
			if err != nil {
				return nil, err
			}
			return conntest.Poison(c), nil
		}), &reconnect.Options{OnMessage: func(_ context.Context, m reconnect.Message) {
			if kept == nil {
				kept = m.Data
			}
			seen.add(string(m.Data))
		}})
		require.NoError(t, err)
		time.Sleep(time.Second)
		synctest.Wait()
		quit(c)
		require.Equal(t, []string{"message 0", "message 1"}, seen.all(), "who does not keep them is not harmed")
		require.Equal(t, bytes.Repeat([]byte{0xDB}, len("message 0")), kept)
	})
}

// Promise 2, over real WebSockets: all are reset at one instant, and the server
// is there again at once.
func TestAHerdOfWebSocketsDoesNotComeBackInStep(t *testing.T) {
	clients := 10_000
	if testing.Short() || raceEnabled() {
		clients = 1_000 // the same code at a tenth of the time
	}
	inVenue(t, conntest.Discard, func(t *testing.T, v *venue) {
		conns := make([]*reconnect.Conn, clients)
		for i := range conns {
			conns[i] = v.open(t, &reconnect.Options{Inbox: reconnect.Inbox{Overflow: reconnect.OverflowDiscard}})
		}
		for _, c := range conns {
			require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		}
		v.network.ResetAll(venueAddr)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for _, c := range conns {
			require.Equal(t, reconnect.StateReady, c.State())
		}
		dials := v.network.Dials(venueAddr)[clients:]
		require.Len(t, dials, clients)
		require.Less(t, conntest.Peak(dials, 100*time.Millisecond), clients/10)
	})
}

// raceEnabled reports whether the test was built with -race.
func raceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
