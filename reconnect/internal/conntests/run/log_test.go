package run_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

func TestLogWritesALineForEachEvent(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		// A Conn with a gate, whose log goes to b.
		var b bytes.Buffer
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.Name, o.Run.Gate, o.Run.Host, o.Run.Trace = "feed", &scene.Gate{}, "h", reconnect.Log(scene.Logger(&b))
		c := s.Open(&o)
		// A dial that fails, a session of 10 s with a probe, a loss, and the end.
		s.WantDial().Refuse(scene.ErrLost)
		peer := s.WantDial().Accept()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		scene.CloseAndWait(c)
		// Each is one line.
		require.Equal(t, []string{
			`level=DEBUG msg="gate passed" name=feed host=h took=1s`,
			`level=DEBUG msg=dialed name=feed try=1 took=0s cause=lost`,
			`level=INFO msg="waiting to redial" name=feed try=2 wait=1s verdict=retry cause=lost`,
			`level=DEBUG msg="gate passed" name=feed host=h took=1s`,
			`level=DEBUG msg=dialed name=feed try=2 took=0s`,
			`level=INFO msg="session ready" name=feed session=1 downtime=3s`,
			`level=DEBUG msg=probed name=feed session=1 took=0s`,
			`level=INFO msg="session ended" name=feed session=1 uptime=10s ready=10s cause="read: lost"`,
			`level=INFO msg="waiting to redial" name=feed try=1 wait=1s verdict=retry cause="read: lost"`,
			`level=INFO msg=ended name=feed cause="use of closed network connection"`,
		}, scene.Lines(&b))
	})
}

func TestLogSaysAllOfAWaitAndWarnsOfAnEndThatNobodyAskedFor(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, b := s.OpenLogged(scene.WithPolicy(scene.Every(time.Second)))
		s.WantDial().Refuse(backoff.RetryAfter(scene.Answered(503), time.Minute))
		s.WantDial().Refuse(scene.Answered(410))
		<-c.Done()
		require.Equal(t, []string{
			`level=DEBUG msg=dialed try=1 took=0s cause=answered`,
			`level=INFO msg="waiting to redial" try=2 wait=1m1s retry_after=1m0s verdict=overload cause=answered`,
			`level=DEBUG msg=dialed try=2 took=0s cause=answered`,
			`level=WARN msg=ended cause="ended for good: answered"`,
		}, scene.Lines(b))
	})
}

func TestLogWarnsOfWhatIsSlowOrOverdue(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		c, b := s.OpenLogged(reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) { time.Sleep(time.Minute) },
		})
		s.WantDial().Accept().Deliver(scene.Text("x"))
		time.Sleep(45 * time.Second)
		scene.CloseAndWait(c)
		require.Equal(t, []string{
			`level=DEBUG msg=dialed try=1 took=0s`,
			`level=INFO msg="session ready" session=1 downtime=0s`,
			`level=WARN msg="callback is slow" what=OnMessage session=1 since=10s`,
			`level=WARN msg="function has not returned" what=OnMessage since=20s`,
			`level=WARN msg="function has not returned" what=OnMessage since=5s`, // since Close
			`level=WARN msg="function has not returned" what=OnMessage since=10s`,
		}, scene.Lines(b)[:6])
	})
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		c, b := s.OpenLogged(reconnect.Options{Inbox: reconnect.Inbox{Messages: 1}})
		scene.Deliver(s.WantDial().Accept(), 1, 3)
		time.Sleep(time.Minute)
		scene.CloseAndWait(c)
		require.Contains(t, scene.Lines(b),
			`level=WARN msg="nobody reads, and the inbox is full" what=reader since=30s`)
	})
}

// levels returns the first letter of the level of each line about a wait.
func levels(b *bytes.Buffer) (all string) {
	for _, line := range scene.Lines(b) {
		if strings.Contains(line, `msg="waiting to redial"`) {
			all += line[len("level="):][:1]
		}
	}
	return all
}

// A refusal that the policy retries is Info once, and Warn when it comes again.
func TestLogWarnsOfTheSameRefusalAgain(t *testing.T) {
	type end = any // a close code; an error of OnSession; a dial that fails; or how long a session is ready before it is lost
	other := errors.New("another answer")
	for _, test := range []struct {
		want string
		ends []end
	}{
		{"IW", []end{4401, 4401}},
		{"IW", []end{3000, 3000}}, // the codes of libraries begin there
		{"IIIW", []end{4401, 4403, 4401, 4401}},
		{"III", []end{1000, 1000, 1011}},
		{"IWW", []end{scene.ErrLost, scene.ErrLost, scene.ErrLost}},
		{"II", []end{scene.ErrLost, other}},
		{"IIIW", []end{4401, io.EOF, time.Minute, 4401}}, // other failures between them
		{"IIII", []end{4401, time.Hour, 4401, time.Second}},
		{"IWIW", []end{4401, 4401, io.EOF, 4401}},
	} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			var b bytes.Buffer
			o := scene.WithPolicy(scene.Every(time.Second))
			o.Run.Trace = reconnect.Log(scene.Logger(&b))
			next := make(chan error, 1)
			o.OnSession = func(context.Context, *reconnect.Opening) error { return <-next }
			c := s.Open(&o)
			for _, e := range test.ends {
				switch e := e.(type) {
				case int:
					next <- nil
					peer := s.WantDial().Accept()
					synctest.Wait()
					peer.Fail(&conn.CloseError{Code: e, Reason: fmt.Sprint("at ", s.Now())})
				case time.Duration:
					next <- nil
					peer := s.WantDial().Accept()
					time.Sleep(e)
					peer.Fail(scene.ErrLost)
				case error:
					if e == io.EOF {
						s.WantDial().Refuse(e)
						continue
					}
					next <- e
					s.WantDial().Accept()
				}
				synctest.Wait()
			}
			synctest.Wait()
			scene.CloseAndWait(c)
			require.Equal(t, test.want, levels(&b), "%v", test.ends)
		})
	}
}

// The end of the context that the program gave to Run is its own wish.
func TestLogDoesNotWarnOfTheEndOfTheCallersContext(t *testing.T) {
	for name, ended := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
		"cause": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, time.Second, errors.New("the shift is over"))
		},
		"cancelled": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var b bytes.Buffer
			ctx, cancel := ended(t.Context())
			defer cancel()
			dial := func(context.Context) (net.Conn, error) { return nil, scene.ErrLost }
			serve := func(context.Context, net.Conn, *reconnect.Session) error { return nil }
			o := &reconnect.RunOptions{Policy: scene.Every(time.Hour), Trace: reconnect.Log(scene.Logger(&b))}
			err := reconnect.Run(ctx, dial, serve, o)
			require.ErrorIs(t, err, context.Cause(ctx))
			all := scene.Lines(&b)
			require.Contains(t, all[len(all)-1], "level=INFO msg=ended", name)
		})
	}
	synctest.Test(t, func(t *testing.T) { // an error like that of a context, which the context has not caused
		var b bytes.Buffer
		dial := func(context.Context) (net.Conn, error) { return nil, backoff.Permanent(context.DeadlineExceeded) }
		serve := func(context.Context, net.Conn, *reconnect.Session) error { return nil }
		o := &reconnect.RunOptions{Trace: reconnect.Log(scene.Logger(&b))}
		require.Error(t, reconnect.Run(t.Context(), dial, serve, o))
		all := scene.Lines(&b)
		require.Contains(t, all[len(all)-1], "level=WARN msg=ended")
	})
}

// Promise 13.
func TestNoSecretIsInALogAStatusOrASeam(t *testing.T) {
	scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
		// Plant the secrets in all that is sent.
		server.Dialer.URL = "ws://usersecret:passsecret@feed.test/v1?token=querysecret"
		server.Dialer.Header = http.Header{"Authorization": {"Bearer headsecret"}}
		server.Dialer.Prepare = func(_ context.Context, r *dialer.Request) error {
			r.URL += "&key=keysecret"
			r.Header.Set("X-Key", "keysecret")
			return nil
		}
		server.Dialer.Conn.ReadLimit = 4096
		// Prepare the faults, and collect every text that the Conn produces.
		faults := everyFault(server)
		var texts scene.Notes
		var log bytes.Buffer
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.OneConnection = true // because with two dials some faults cause no wait
		o.Run.Classify = func(err error) backoff.Verdict {
			texts.Add(err.Error())
			return backoff.Verdict{Class: backoff.ClassRetry}
		}
		o.Run.Trace = reconnect.Log(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		c := server.Open(t, &o)
		var watchers sync.WaitGroup
		watchers.Go(func() { watchStatus(c, &texts) })
		watchers.Go(func() { watchStream(c, &texts) })
		// Live through all faults.
		time.Sleep(time.Hour)
		require.NoError(t, c.Write(t.Context(), scene.Text("survived")))
		synctest.Wait()
		scene.CloseAndWait(c)
		watchers.Wait()

		// Each fault happened, and no text has a secret or a control character.
		require.Equal(t, faults, strings.Count(log.String(), "waiting to redial"), "each fault happened")
		require.Contains(t, texts.All(), "read survived")
		require.Contains(t, texts.All(),
			`seam: session 1 ended: read: closed by the peer: 1008 `+
				`"\x1b[31mred\r\nlevel=ERROR msg=\"all is lost\"\u202e"`)
		require.Contains(t, texts.All(),
			`seam: session 3 ended: read: closed by the peer: 4002 "no ..., ..., ..., ..."`)
		require.Contains(t, texts.All(),
			`seam: session 4 ended: read: closed by the peer: 1012 "redial/1 wait=1s url=ws://feed.test/v1 hint=..."`)
		for _, s := range append(texts.All(), strings.Split(strings.TrimSpace(log.String()), "\n")...) {
			requireHarmless(t, s)
		}
	})
}

// secrets must appear nowhere (promise 13). They are in the URL, the header, the credentials of
// Prepare, and in what the server sends back.
var secrets = []string{"usersecret", "passsecret", "querysecret", "headsecret", "keysecret", "bodysecret", "hintsecret"}

const controls = "\x1b[31mred\r\nlevel=ERROR msg=\"all is lost\"\u202e"

// everyFault prepares every kind of fault: first of the dials, then of the handshakes, then of
// the sessions. It returns how many they are.
func everyFault(server *scene.WSServer) (faults int) {
	dials := []conntest.Fault{
		{Err: syscall.ECONNREFUSED}, {Hang: true}, {Drop: true}, {Delay: time.Second, Err: syscall.ECONNREFUSED},
		{Err: &net.DNSError{Err: "no such host", Name: "feed.test", IsNotFound: true}},
	}
	server.Network.Fault(scene.WSAddr, append(dials, conntest.Fault{})...)
	leak := http.Header{"Location": {"http://other.test/?token=bodysecret"}, "X-Token": {"bodysecret"}}
	page := func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "bodysecret "+r.URL.String()+controls, 400)
	}
	answers := []conntest.Answer{
		page, conntest.Status(401, leak), conntest.Status(503, leak), conntest.Status(302, leak), conntest.Status(200, leak),
		http.RedirectHandler("", http.StatusFound).ServeHTTP, conntest.Hang, conntest.HangUp, conntest.BadAccept, conntest.Garbage([]byte(controls + "\r\n\r\n")),
		conntest.Status(200, http.Header{"X": {strings.Repeat("bodysecret", 100_000)}}),
	}
	for _, h := range []conntest.Handler{
		conntest.CloseWith(1008, controls), conntest.CloseWith(4001, strings.Repeat("x", 123)),
		conntest.CloseWith(4002, "no keysecret, passsecret, querysecret, headsecret"),
		conntest.CloseWith(1012, "redial/1 wait=1s url=ws://feed.test/v1?resume=hintsecret hint=hintsecret"),
		conntest.Frames(conntest.Frame{Head: conntest.Fin | 0x3, Payload: []byte(controls)}),
		conntest.Frames(conntest.Frame{Head: conntest.Fin | conntest.TextFrame, Payload: make([]byte, 5000)}),
		conntest.Frames(conntest.Frame{Head: conntest.TextFrame}),
		on(func(p *conntest.Pipe) { p.Reset() }), on(func(p *conntest.Pipe) { p.FIN(conntest.ToClient) }),
		on(func(p *conntest.Pipe) { p.Stall(conntest.Both) }), on(func(p *conntest.Pipe) { p.Window(conntest.ToServer, 0) }),
		on(func(p *conntest.Pipe) {
			p.Inject(conntest.ToClient, []byte{0x81, 100, 'x'})
			p.Cut(conntest.ToClient, 1)
		}),
	} {
		answers = append(answers, server.AcceptWith(h))
	}
	server.Next(append(answers, server.Accept)...)
	return len(dials) + len(answers)
}

// on returns a handler that calls f with its connection.
func on(f func(*conntest.Pipe)) conntest.Handler {
	return func(ctx context.Context, _ *websocket.Conn, _ *http.Request) {
		f(conntest.PipeOf(ctx))
		<-ctx.Done()
	}
}

// watchStatus collects the errors of the status and of writes.
func watchStatus(c *reconnect.Conn, texts *scene.Notes) {
	for c.Await(context.Background(), reconnect.StateWaiting) == nil {
		texts.Add(fmt.Sprintf("status: %v", c.Status().Err))
		if err := c.Write(context.Background(), scene.Text("x")); err != nil {
			texts.Add(err.Error())
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// watchStream collects what the reader gets.
func watchStream(c *reconnect.Conn, texts *scene.Notes) {
	for m, err := range c.Messages(context.Background()) {
		if seam, ok := errors.AsType[*reconnect.Seam](err); ok {
			texts.Add("seam: " + err.Error())
			texts.Add(seam.Cause.Error())
		} else if err == nil {
			texts.Add("read " + string(m.Data))
		}
	}
}

func requireHarmless(t *testing.T, s string) {
	t.Helper()
	for _, secret := range secrets {
		require.NotContains(t, s, secret)
	}
	require.Less(t, len(s), 1000)
	require.NotContains(t, s, "level=ERROR msg=\"all", "an injected line")
	for _, r := range s {
		require.True(t, unicode.IsPrint(r), "%q in %q", r, s)
	}
}

// An outage repeats the same lines, of one connection or of many.
func TestLogThinsEqualLines(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, _ *scene.Scene) {
		var b bytes.Buffer
		log := reconnect.Log(scene.Logger(&b))
		wait := func(i int, err error) {
			log.WaitStart(reconnect.WaitStart{
				Name: fmt.Sprint("feed", i), Try: i, Cause: err,
				Verdict: backoff.Verdict{Class: backoff.ClassRetry},
			})
		}
		nameOf, countOf := regexp.MustCompile(`name=\w+`), regexp.MustCompile(` count=\d+`)
		written := func() (shown []string) {
			for _, line := range scene.Lines(&b) {
				shown = append(shown, nameOf.FindString(line)+countOf.FindString(line))
			}
			b.Reset()
			return shown
		}
		for i := range 500 {
			wait(i+1, fmt.Errorf("read tcp 127.0.0.1:%d->127.0.0.1:443: reset", 40000+i))
		}
		require.Equal(t, []string{
			"name=feed1", "name=feed2", "name=feed4 count=4", "name=feed8 count=8", "name=feed16 count=16",
			"name=feed32 count=32", "name=feed64 count=64", "name=feed128 count=128", "name=feed256 count=256",
		}, written())
		wait(1, scene.ErrLost)
		require.Equal(t, []string{"name=feed1"}, written(), "another cause")
		for range 20 { // an hour and a half, with lines that are not rare
			time.Sleep(5 * time.Minute)
			wait(1, scene.ErrLost)
		}
		require.Equal(t, []string{
			"name=feed1", "name=feed1 count=4", "name=feed1 count=8", "name=feed1 count=16",
		}, written())
		for range 5 {
			time.Sleep(10 * time.Minute)
			wait(1, scene.ErrLost)
		}
		require.Len(t, written(), 5, "rare lines")
		for i := range 1000 { // each differs from the others
			wait(i, fmt.Errorf("answer %d", i))
		}
		require.Len(t, written(), 1000)
		time.Sleep(10 * time.Minute)
		for range 4 {
			wait(1, scene.ErrLost)
		}
		require.Equal(t, []string{"name=feed1", "name=feed1", "name=feed1 count=4"}, written(), "there is room again")
	})
}

func TestLogWritesEachReadySession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, b := s.OpenLogged(scene.WithPolicy(scene.Every(time.Second)))
		for range 9 {
			s.WantDial().Accept().Fail(scene.ErrLost)
			synctest.Wait()
		}
		scene.CloseAndWait(c)
		require.Equal(t, 9, strings.Count(b.String(), `msg="session ready"`))
		require.Equal(t, 4, strings.Count(b.String(), `msg="session ended"`))
		require.Equal(t, 4, strings.Count(b.String(), `msg="waiting to redial"`))
	})
}

func TestLogSaysThatAWaitIsForALogin(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		_, b := s.OpenLogged(scene.LoggingIn(scene.Hourly(t, 1)))
		s.WantDial().Accept().Fail(scene.ErrLost)
		synctest.Wait()
		all := scene.Lines(b)
		require.Equal(t, `level=INFO msg="waiting for a login" try=2 wait=1h0m0s verdict=retry `+
			`cause="the budget allows no login before 2100-01-01T01:00:00Z: read: lost"`, all[len(all)-1])
	})
}

// What is in the way then is the budget.
func TestLogDoesNotWarnOfTheSameRefusalWhileItWaitsForALogin(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		_, b := s.OpenLogged(scene.LoggingIn(scene.Hourly(t, 2)))
		for range 2 {
			s.WantDial().Accept().Fail(&conn.CloseError{Code: 4401})
			synctest.Wait()
		}
		all := scene.Lines(b)
		require.Contains(t, all[len(all)-1], `level=INFO msg="waiting for a login"`)
	})
}
