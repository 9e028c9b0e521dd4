package reconnect_test

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
)

// lines returns the lines that a logger wrote.
func lines(b *bytes.Buffer) []string {
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

// logger writes to b, whatever the level is, and without the times.
func logger(b *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// openLogged opens a Conn whose log goes to b.
func (s *scene) openLogged(o reconnect.Options) (c *reconnect.Conn, b *bytes.Buffer) {
	b = new(bytes.Buffer)
	o.Run.Trace = reconnect.Log(logger(b))
	return s.open(&o), b
}

func TestLogWritesALineForEachEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		// A Conn with a gate, whose log goes to b.
		var b bytes.Buffer
		s.fake = alive
		o := withPolicy(every(time.Second))
		o.Run.Name, o.Run.Gate, o.Run.Host, o.Run.Trace = "feed", &gate{}, "h", reconnect.Log(logger(&b))
		c := s.open(&o)
		// A dial that fails, a session of 10 s with a probe, a loss, and the end.
		s.wantDial().refuse(errLost)
		peer := s.wantDial().accept()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		peer.Fail(errLost)
		synctest.Wait()
		closeAndWait(c)
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
		}, lines(&b))
	})
}

func TestLogSaysAllOfAWaitAndWarnsOfAnEndThatNobodyAskedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, b := s.openLogged(withPolicy(every(time.Second)))
		s.wantDial().refuse(backoff.RetryAfter(answered(503), time.Minute))
		s.wantDial().refuse(answered(410))
		<-c.Done()
		require.Equal(t, []string{
			`level=DEBUG msg=dialed try=1 took=0s cause=answered`,
			`level=INFO msg="waiting to redial" try=2 wait=1m1s retry_after=1m0s verdict=overload cause=answered`,
			`level=DEBUG msg=dialed try=2 took=0s cause=answered`,
			`level=WARN msg=ended cause="ended for good: answered"`,
		}, lines(b))
	})
}

func TestLogWarnsOfWhatIsSlowOrOverdue(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c, b := s.openLogged(reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) { time.Sleep(time.Minute) },
		})
		s.wantDial().accept().Deliver(text("x"))
		time.Sleep(45 * time.Second)
		closeAndWait(c)
		require.Equal(t, []string{
			`level=DEBUG msg=dialed try=1 took=0s`,
			`level=INFO msg="session ready" session=1 downtime=0s`,
			`level=WARN msg="callback is slow" what=OnMessage session=1 since=10s`,
			`level=WARN msg="function has not returned" what=OnMessage since=20s`,
			`level=WARN msg="function has not returned" what=OnMessage since=5s`, // since Close
			`level=WARN msg="function has not returned" what=OnMessage since=10s`,
		}, lines(b)[:6])
	})
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c, b := s.openLogged(reconnect.Options{Inbox: reconnect.Inbox{Messages: 1}})
		deliver(s.wantDial().accept(), 1, 3)
		time.Sleep(time.Minute)
		closeAndWait(c)
		require.Contains(t, lines(b), `level=WARN msg="nobody reads, and the inbox is full" what=reader since=30s`)
	})
}

// levels returns the first letter of the level of each line about a wait.
func levels(b *bytes.Buffer) (all string) {
	for _, line := range lines(b) {
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
		{"IWW", []end{errLost, errLost, errLost}},
		{"II", []end{errLost, other}},
		{"IIIW", []end{4401, io.EOF, time.Minute, 4401}}, // other failures between them
		{"IIII", []end{4401, time.Hour, 4401, time.Second}},
		{"IWIW", []end{4401, 4401, io.EOF, 4401}},
	} {
		inBubble(t, func(t *testing.T, s *scene) {
			var b bytes.Buffer
			o := withPolicy(every(time.Second))
			o.Run.Trace = reconnect.Log(logger(&b))
			next := make(chan error, 1)
			o.OnSession = func(context.Context, *reconnect.Opening) error { return <-next }
			c := s.open(&o)
			for _, e := range test.ends {
				switch e := e.(type) {
				case int:
					next <- nil
					peer := s.wantDial().accept()
					synctest.Wait()
					peer.Fail(&conn.CloseError{Code: e, Reason: fmt.Sprint("at ", s.now())})
				case time.Duration:
					next <- nil
					peer := s.wantDial().accept()
					time.Sleep(e)
					peer.Fail(errLost)
				case error:
					if e == io.EOF {
						s.wantDial().refuse(e)
						continue
					}
					next <- e
					s.wantDial().accept()
				}
				synctest.Wait()
			}
			synctest.Wait()
			closeAndWait(c)
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
			dial := func(context.Context) (net.Conn, error) { return nil, errLost }
			serve := func(context.Context, net.Conn, *reconnect.Session) error { return nil }
			err := reconnect.Run(ctx, dial, serve, &reconnect.RunOptions{Policy: every(time.Hour), Trace: reconnect.Log(logger(&b))})
			require.ErrorIs(t, err, context.Cause(ctx))
			all := lines(&b)
			require.Contains(t, all[len(all)-1], "level=INFO msg=ended", name)
		})
	}
	synctest.Test(t, func(t *testing.T) { // an error like that of a context, which the context has not caused
		var b bytes.Buffer
		dial := func(context.Context) (net.Conn, error) { return nil, backoff.Permanent(context.DeadlineExceeded) }
		serve := func(context.Context, net.Conn, *reconnect.Session) error { return nil }
		require.Error(t, reconnect.Run(t.Context(), dial, serve, &reconnect.RunOptions{Trace: reconnect.Log(logger(&b))}))
		all := lines(&b)
		require.Contains(t, all[len(all)-1], "level=WARN msg=ended")
	})
}

// Promise 13.
func TestNoSecretIsInALogAStatusOrASeam(t *testing.T) {
	withWSServer(t, nil, func(t *testing.T, server *wsServer) {
		// Plant the secrets in all that is sent.
		server.dialer.URL = "ws://usersecret:passsecret@feed.test/v1?token=querysecret"
		server.dialer.Header = http.Header{"Authorization": {"Bearer headsecret"}}
		server.dialer.Prepare = func(_ context.Context, r *dialer.Request) error {
			r.URL += "&key=keysecret"
			r.Header.Set("X-Key", "keysecret")
			return nil
		}
		server.dialer.Conn.ReadLimit = 4096
		// Prepare the faults, and collect every text that the Conn produces.
		faults := everyFault(server)
		var texts notes
		var log bytes.Buffer
		o := withPolicy(every(time.Second))
		o.Run.OneConnection = true // because with two dials some faults cause no wait
		o.Run.Classify = func(err error) backoff.Verdict {
			texts.add(err.Error())
			return backoff.Verdict{Class: backoff.ClassRetry}
		}
		o.Run.Trace = reconnect.Log(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		c := server.open(t, &o)
		var watchers sync.WaitGroup
		watchers.Go(func() { watchStatus(c, &texts) })
		watchers.Go(func() { watchStream(c, &texts) })
		// Live through all faults.
		time.Sleep(time.Hour)
		require.NoError(t, c.Write(t.Context(), text("survived")))
		synctest.Wait()
		closeAndWait(c)
		watchers.Wait()

		// Each fault happened, and no text has a secret or a control character.
		require.Equal(t, faults, strings.Count(log.String(), "waiting to redial"), "each fault happened")
		require.Contains(t, texts.all(), "read survived")
		require.Contains(t, texts.all(), `seam: session 1 ended: read: closed by the peer: 1008 "\x1b[31mred\r\nlevel=ERROR msg=\"all is lost\"\u202e"`)
		require.Contains(t, texts.all(),
			`seam: session 3 ended: read: closed by the peer: 4002 "no ..., ..., ..., ..."`)
		require.Contains(t, texts.all(),
			`seam: session 4 ended: read: closed by the peer: 1012 "redial/1 wait=1s url=ws://feed.test/v1 hint=..."`)
		for _, s := range append(texts.all(), strings.Split(strings.TrimSpace(log.String()), "\n")...) {
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
func everyFault(server *wsServer) (faults int) {
	dials := []conntest.Fault{
		{Refuse: true}, {Hang: true}, {Drop: true}, {Delay: time.Second, Refuse: true},
		{Err: &net.DNSError{Err: "no such host", Name: "feed.test", IsNotFound: true}},
	}
	server.network.Fault(wsAddr, append(dials, conntest.Fault{})...)
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
func watchStatus(c *reconnect.Conn, texts *notes) {
	for c.Await(context.Background(), reconnect.StateWaiting) == nil {
		texts.add(fmt.Sprintf("status: %v", c.Status().Err))
		if err := c.Write(context.Background(), text("x")); err != nil {
			texts.add(err.Error())
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// watchStream collects what the reader gets.
func watchStream(c *reconnect.Conn, texts *notes) {
	for m, err := range c.Messages(context.Background()) {
		if seam, ok := errors.AsType[*reconnect.Seam](err); ok {
			texts.add("seam: " + err.Error())
			texts.add(seam.Cause.Error())
		} else if err == nil {
			texts.add("read " + string(m.Data))
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
	inBubble(t, func(t *testing.T, _ *scene) {
		var b bytes.Buffer
		log := reconnect.Log(logger(&b))
		wait := func(i int, err error) {
			log.WaitStart(reconnect.WaitStart{
				Name: fmt.Sprint("feed", i), Try: i, Cause: err,
				Verdict: backoff.Verdict{Class: backoff.ClassRetry},
			})
		}
		nameOf, countOf := regexp.MustCompile(`name=\w+`), regexp.MustCompile(` count=\d+`)
		written := func() (shown []string) {
			for _, line := range lines(&b) {
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
		wait(1, errLost)
		require.Equal(t, []string{"name=feed1"}, written(), "another cause")
		for range 20 { // an hour and a half, with lines that are not rare
			time.Sleep(5 * time.Minute)
			wait(1, errLost)
		}
		require.Equal(t, []string{
			"name=feed1", "name=feed1 count=4", "name=feed1 count=8", "name=feed1 count=16",
		}, written())
		for range 5 {
			time.Sleep(10 * time.Minute)
			wait(1, errLost)
		}
		require.Len(t, written(), 5, "rare lines")
		for i := range 1000 { // each differs from the others
			wait(i, fmt.Errorf("answer %d", i))
		}
		require.Len(t, written(), 1000)
		time.Sleep(10 * time.Minute)
		for range 4 {
			wait(1, errLost)
		}
		require.Equal(t, []string{"name=feed1", "name=feed1", "name=feed1 count=4"}, written(), "there is room again")
	})
}

func TestLogWritesEachReadySession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, b := s.openLogged(withPolicy(every(time.Second)))
		for range 9 {
			s.wantDial().accept().Fail(errLost)
			synctest.Wait()
		}
		closeAndWait(c)
		require.Equal(t, 9, strings.Count(b.String(), `msg="session ready"`))
		require.Equal(t, 4, strings.Count(b.String(), `msg="session ended"`))
		require.Equal(t, 4, strings.Count(b.String(), `msg="waiting to redial"`))
	})
}

func TestLogSaysThatAWaitIsForALogin(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		_, b := s.openLogged(loggingIn(hourly(t, 1)))
		s.wantDial().accept().Fail(errLost)
		synctest.Wait()
		all := lines(b)
		require.Equal(t, `level=INFO msg="waiting for a login" try=2 wait=1h0m0s verdict=retry `+
			`cause="the budget allows no login before 2100-01-01T01:00:00Z: read: lost"`, all[len(all)-1])
	})
}

// What is in the way then is the budget.
func TestLogDoesNotWarnOfTheSameRefusalWhileItWaitsForALogin(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		_, b := s.openLogged(loggingIn(hourly(t, 2)))
		for range 2 {
			s.wantDial().accept().Fail(&conn.CloseError{Code: 4401})
			synctest.Wait()
		}
		all := lines(b)
		require.Contains(t, all[len(all)-1], `level=INFO msg="waiting for a login"`)
	})
}
