package debug

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// to is a dialer for an endpoint, whose dials all end in the same way after a second.
type to struct {
	endpoint string
	err      error
}

func (d to) Endpoint() string { return d.endpoint }

func (d to) Dial(context.Context) (conn.Conn, error) {
	time.Sleep(time.Second)
	if d.err != nil {
		return nil, d.err
	}
	return conntest.NewFake(&conntest.FakeOptions{Pings: true, Transport: true}).Conn(), nil
}

// dial opens and registers n Conns. All their dials fail with err, or succeed if err is nil. Each wait is 10 s
// unless run has a Policy, also after a rejected login: a random wait could end just before the page is looked
// at, so that the Conn dials at that moment and the page has no next dial to show.
func (s *scene) dial(n int, name, endpoint string, err error, run reconnect.RunOptions) {
	for i := range n {
		run := run
		run.Name = fmt.Sprintf("%s-%d", name, i)
		if run.Policy == nil {
			run.Policy = backoff.WithSlow(every(10*time.Second), backoff.SlowWait{Min: -1})
		}
		c, err := reconnect.New(to{endpoint, err}, &reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {}, Run: run})
		require.NoError(s.t, err)
		s.t.Cleanup(func() { c.Close(); <-c.Done() })
		s.page.Register(run.Name, c, nil)
	}
}

// answered is an error with the status of an answer.
type answered int

func (a answered) Error() string   { return "planted-secret" }
func (a answered) StatusCode() int { return int(a) }

// said returns the lines above the rows as the page shows them, without HTML.
func (s *scene) said() (lines []string) {
	s.t.Helper()
	_, text, _ := strings.Cut(get(s.page, "/").Body.String(), "<main data-boot=")
	text, _, _ = strings.Cut(text, `class="chips"`)
	line := regexp.MustCompile(`(?s)<(?:li class|p class="about)[^>]*>(.*?)</(?:li|p)>`)
	for _, m := range line.FindAllStringSubmatch(text, -1) {
		lines = append(lines, html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], "")))
	}
	return lines
}

func TestThePageSaysWhatIsWrong(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector itself fails with so many timers in a bubble: golang/go#78156")
	}
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.dial(30, "ready", "wss://feed.example/v1", nil, reconnect.RunOptions{})
		s.dial(9, "refused", "wss://feed.example/v1", fmt.Errorf("planted-secret: %w", syscall.ECONNREFUSED), reconnect.RunOptions{})
		s.dial(2, "refused elsewhere", "tls://orders.example:7000", syscall.ECONNREFUSED, reconnect.RunOptions{})
		s.dial(7, "login", "wss://feed.example/v1", answered(401), reconnect.RunOptions{})
		s.dial(3, "gone", "wss://feed.example/v1", backoff.Permanent(answered(410)), reconnect.RunOptions{})
		s.dial(1, "told", "wss://feed.example/v1", &conn.CloseError{Code: 1013, Reason: "planted-secret"}, reconnect.RunOptions{})
		s.dial(1, "other", "wss://feed.example/v1", errLost, reconnect.RunOptions{})
		s.dial(1, "name", "wss://feed.example/v1", &net.DNSError{Err: "planted-secret", IsNotFound: true}, reconnect.RunOptions{})
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, []string{
			"52 not connected yet to feed.example:443 for 500 ms", "2 not connected yet to orders.example:7000 for 500 ms",
		}, s.said())
		time.Sleep(15*time.Minute + 3*time.Second)
		require.Equal(t, []string{
			"3 ended at feed.example:443 for 15 min: the server answered 410 Gone",
			"9 away from feed.example:443 for 15 min, next dial in 9.5 s: connection refused",
			"7 away from feed.example:443 for 15 min, next dial in 9.5 s: the server answered 401 Unauthorized",
			"2 away from orders.example:7000 for 15 min, next dial in 9.5 s: connection refused",
			"1 away from feed.example:443 for 15 min, next dial in 9.5 s: closed by the peer: 1013 (try again later)",
			"1 away from feed.example:443 for 15 min, next dial in 9.5 s: the name of the host was not resolved",
			"1 away from feed.example:443 for 15 min, next dial in 9.5 s: another error: " +
				"the program's log may have its text",
		}, s.said())
	})
}

// A line leads to the Conns that it counts, and to no other.
func TestALineLeadsToItsConns(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.dial(3, "refused", "wss://feed.example/v1", syscall.ECONNREFUSED, reconnect.RunOptions{})
		s.dial(2, "refused elsewhere", "wss://other.example/v1", syscall.ECONNREFUSED, reconnect.RunOptions{})
		s.dial(4, "login", "wss://feed.example/v1", answered(401), reconnect.RunOptions{})
		s.dial(1, "gone", "wss://feed.example/v1", backoff.Permanent(answered(401)), reconnect.RunOptions{})
		s.dial(1, "nowhere", "", errLost, reconnect.RunOptions{})
		s.dial(5, "ready", "wss://feed.example/v1", nil, reconnect.RunOptions{})
		time.Sleep(3 * time.Second)
		lines := s.snapshot("").About
		require.Len(t, lines, 5)
		for _, line := range lines {
			got := s.snapshot(strings.TrimPrefix(line.Query, "?"))
			require.Equal(t, line.Conns, got.Found, line.Query)
			require.Equal(t, line.Condition, got.Conns[0].Condition)
			rows, all := get(s.page, "/"+line.Query).Body.String(), get(s.page, "/").Body.String()
			require.Equal(t, line.Conns, strings.Count(rows, `<th scope="row"><a href="?conn=`))
			require.Contains(t, html.UnescapeString(all), `href="`+line.Query+`"`)
		}
	})
}

// The Conns behind one gate have one line, with the name of the Conn that probes for all.
func TestThoseBehindAGateAreOneLine(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		g, err := budget.NewGate(&budget.GateOptions{Concurrent: 1, Probe: every(4 * time.Second)})
		require.NoError(t, err)
		s.dial(50, "acct", "wss://feed.example/v1", fmt.Errorf("planted-secret: %w", syscall.ECONNREFUSED),
			reconnect.RunOptions{Host: "feed.example:443", Gate: g})
		s.dial(1, "login", "wss://feed.example/v1", answered(401), reconnect.RunOptions{})
		time.Sleep(10 * time.Minute)
		said := regexp.MustCompile(`^50 at the gate for feed.example:443 for 10 min, (next dial|dialed now)` +
			`( in (\d+(\.\d)? m?s|under 1 ms))? by acct-\d+: connection refused$`)
		seen := map[string]bool{}
		for range 100 { // a dial takes a second, and the next one comes later
			time.Sleep(100 * time.Millisecond)
			lines := s.said()
			require.Len(t, lines, 2)
			m := said.FindStringSubmatch(lines[0])
			require.NotNil(t, m, lines[0])
			seen[m[1]] = true
		}
		require.Len(t, seen, 2, seen)
		line := s.snapshot("").About[0]
		require.Equal(t, "gate", line.Cause)
		require.Equal(t, 50, s.snapshot(strings.TrimPrefix(line.Query, "?")).Found, "with the one that has dialed last")
	})
}

// Two gates for one server have one line, with the next probe of both.
func TestGatesForOneServerAreOneLine(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		for i, name := range []string{"first", "second"} {
			g, err := budget.NewGate(&budget.GateOptions{Concurrent: 1, Probe: every(time.Duration(2-i) * time.Hour)})
			require.NoError(t, err)
			o := reconnect.RunOptions{Host: "feed.example:443", Gate: g}
			s.dial(20-i, name, "wss://feed.example/v1", syscall.ECONNREFUSED, o)
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Second)
		about := s.snapshot("").About
		require.Len(t, about, 1)
		require.Equal(t, []any{"gate", 39}, []any{about[0].Cause, about[0].Conns})
		require.Contains(t, about[0].By, "second")
		require.Less(t, time.Until(about[0].Next), time.Hour)
	})
}

// Conns without a name have the next probe of all in their line, too, though no name.
func TestGatesOfUnnamedConnsShowFirstProbe(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		for _, wait := range []time.Duration{time.Hour, 2 * time.Hour} {
			g, err := budget.NewGate(&budget.GateOptions{Concurrent: 1, Probe: every(wait)})
			require.NoError(t, err)
			for range 2 {
				c, err := reconnect.New(to{"wss://feed.example/v1", syscall.ECONNREFUSED}, &reconnect.Options{
					OnMessage: func(context.Context, reconnect.Message) {},
					Run:       reconnect.RunOptions{Host: "feed.example:443", Gate: g, Policy: every(10 * time.Second)},
				})
				require.NoError(t, err)
				t.Cleanup(func() { c.Close(); <-c.Done() })
				s.page.Register("", c, nil)
			}
			time.Sleep(time.Minute)
		}
		about := s.snapshot("").About
		require.Len(t, about, 1)
		require.Equal(t, []any{"gate", 4, ""}, []any{about[0].Cause, about[0].Conns, about[0].By})
		require.Less(t, time.Until(about[0].Next), time.Hour)
		require.Regexp(t, `^4 at the gate for .* for 2 min, next dial in 58 min: connection refused$`, s.said()[0])
		time.Sleep(time.Until(about[0].Next) + time.Millisecond)
		require.Regexp(t, `^\d at the gate for .* for 1 h 0 min, dialed now: connection refused$`, s.said()[0])
	})
}

func TestALineForOneThatWaitsAtAGate(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("feed", s.open(reconnect.Options{Run: reconnect.RunOptions{Host: "host", Gate: closedGate{}}}), nil)
		synctest.Wait()
		require.Equal(t, []string{"1 at the gate for host:80 for 0 s"}, s.said())
	})
}

func TestFlappingIsALine(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("feed", s.open(reconnect.Options{}), nil)
		for range 3 {
			s.accept().Fail(&conn.CloseError{Code: 1012, Reason: "planted-secret"})
		}
		s.accept()
		require.Equal(t, []string{"1 flapping at host:80: closed by the peer: 1012 (service restart)"}, s.said())
	})
}

// There are eight lines at most, and the rest is counted.
func TestLinesAreCut(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		for i := range 12 {
			s.dial(2, fmt.Sprint("feed-", i), fmt.Sprintf("wss://feed-%d.example/v1", i), syscall.ECONNREFUSED, reconnect.RunOptions{})
		}
		time.Sleep(3 * time.Second)
		said := s.said()
		require.Len(t, said, 9)
		require.Equal(t, "8 for other reasons", said[8])
		got := s.snapshot("")
		require.Len(t, got.About, 8)
		require.Equal(t, 8, got.About[7].More)
		const left = "show=away+feed-11.example%3A443+refused"
		require.Equal(t, 2, s.snapshot(left).Found, "a line that is not listed still leads to its Conns")
	})
}

// A page without trouble says so, and an empty one has no chips.
func TestAPageWithoutTroubleIsShort(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		require.Empty(t, s.said())
		require.NotContains(t, get(s.page, "/").Body.String(), `class="chip`)
		s.dial(3, "feed", "wss://feed.example/v1", nil, reconnect.RunOptions{})
		time.Sleep(3 * time.Second)
		require.Equal(t, []string{"All connections are ready."}, s.said())
		body := get(s.page, "/").Body.String()
		require.Equal(t, 2, len(regexp.MustCompile(`class="chip[ "]`).FindAllString(body, -1)), "all and ready")
		require.Contains(t, get(s.page, "/?show=ended").Body.String(), "No connection is like that now.")
		c := s.open(reconnect.Options{})
		s.page.Register("closed", c, nil)
		c.Close()
		<-c.Done()
		require.Equal(t, []string{"No connection is in trouble."}, s.said())
	})
}

func TestTheServerOfAnEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"wss://feed.example/v1": "feed.example:443", "ws://feed.example": "feed.example:80", "tls://[2001:db8::1]:7": "[2001:db8::1]:7",
		"wss://[2001:db8::1]/": "[2001:db8::1]:443", "wss://a.example/x, wss://b.example/y": "a.example:443, b.example:443",
		"wss://a.example/x, wss://a.example/y": "a.example:443", "feed.example:7": "feed.example:7", "": "", "the feed": "the feed",
	} {
		require.Equal(t, want, serverOf(endpoint), endpoint)
	}
}

// The cause has the code of the peer's answer or close frame, and no code of a close frame that we have sent.
func TestTheCodeOfACauseIsThePeers(t *testing.T) {
	for _, c := range []struct {
		err  error
		word string
	}{
		{answered(503), "503"}, {&conn.CloseError{Code: 4401}, "4401"}, {&conn.ProtocolError{}, "protocol"}, {syscall.ECONNREFUSED, "refused"},
		{errors.Join(backoff.ErrGaveUp, answered(404)), "404"},
	} {
		require.Equal(t, c.word, causeOf(c.err, time.Now()).word(), c.err)
	}
}
