package debug

import (
	"context"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

func TestAConnThatHasEndedIsForgottenByItself(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		for range 2 {
			c := s.open(reconnect.Options{})
			s.page.Register("feed", c, nil)
			s.accept()
			c.Close()
			<-c.Done()
			time.Sleep(time.Minute)
		}
		require.Equal(t, 2, s.snapshot("").Counts.Closed)
		time.Sleep(8*time.Minute + 30*time.Second)
		require.Equal(t, 1, s.snapshot("").Counts.Closed)
		time.Sleep(time.Minute)
		s.page.Register("another", s.open(reconnect.Options{}), nil)
		require.Len(t, s.page.conns, 1, "without a look")
	})
}

func TestOnlySoManyThatHaveEndedAreKept(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{})
		c.Close()
		<-c.Done()
		for i := range 300 {
			s.page.Register(fmt.Sprint(i), c, nil)
		}
		require.Equal(t, 256, s.snapshot("").Counts.Closed)
		require.Equal(t, "44", s.snapshot("").Conns[0].Name, "the oldest are forgotten")
		require.Len(t, s.page.past, 256)
	})
}

// A Conn that has ended by itself is shown until it is unregistered, or has had a successor for 10 min.
func TestAConnThatHasEndedByItselfStays(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		die := func(name string) (unregister func()) {
			c := s.open(reconnect.Options{})
			unregister = s.page.Register(name, c, nil)
			s.refuse(backoff.Permanent(errLost))
			<-c.Done()
			return unregister
		}
		unregister := die("feed")
		die("orders")
		time.Sleep(24 * time.Hour)
		require.Equal(t, 2, s.snapshot("").Counts.Ended)
		unregister()
		require.Equal(t, 1, s.snapshot("").Counts.Ended)
		s.page.Register("orders", s.open(reconnect.Options{}), nil)
		s.page.Register("another", s.open(reconnect.Options{}), nil)
		time.Sleep(9 * time.Minute)
		require.Equal(t, 1, s.snapshot("").Counts.Ended, "its successor is there for less than 10 min")
		time.Sleep(2 * time.Minute)
		require.Zero(t, s.snapshot("").Counts.Ended)
		require.Empty(t, s.page.dead)
		require.Empty(t, s.page.past)
	})
}

func TestOnlySoManyThatHaveEndedByThemselvesAreKept(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		c := s.open(reconnect.Options{})
		s.refuse(backoff.Permanent(errLost))
		<-c.Done()
		for i := range 4100 {
			s.page.Register(fmt.Sprint(i), c, nil)
		}
		require.Equal(t, 4096, s.snapshot("").Counts.Ended)
		require.Nil(t, s.page.conns[4], "the oldest are forgotten")
		require.NotNil(t, s.page.conns[5])
	})
}

// After unregister, and after Close, a Conn costs what it did before.
func TestUnregisterAndCloseStopTheWatch(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		first, second := s.open(reconnect.Options{}), reconnect.Options{}
		unregister := s.page.Register("first", first, nil)
		s.accept()
		w := s.page.conns[1]
		unregister()
		unregister()
		require.Zero(t, s.snapshot("").Counts.All)
		before := len(w.events)
		c := s.open(second)
		s.page.Register("second", c, nil)
		x := s.page.conns[2]
		synctest.Wait() // an event that has begun may still come after Close
		require.NoError(t, s.page.Close())
		require.NoError(t, s.page.Close())
		events := len(x.events)
		first.Redial(1, nil)
		s.accept()
		synctest.Wait()
		require.Len(t, w.events, before)
		require.Len(t, x.events, events)
		require.Equal(t, 503, get(s.page, "/").Code)
		s.page.Register("third", c, nil)()
		s.page.RegisterValues("x", nil)()
		require.Nil(t, s.page.conns)
	})
}

// A Conn that is forgotten is not kept in memory, though it was shown before.
func TestAConnThatIsForgottenIsNotKept(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		unregister := s.page.Register("feed", s.open(reconnect.Options{}), nil)
		w := weak.Make(s.page.conns[1])
		require.Equal(t, 1, s.snapshot("").Counts.All)
		unregister()
		unregister = nil
		runtime.GC()
		require.Nil(t, w.Value())
		runtime.KeepAlive(s.page)
	})
}

func TestWhatIsBesideTheConnsIsShown(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		g, err := budget.NewGate(nil)
		require.NoError(t, err)
		b, err := budget.NewBreaker(nil)
		require.NoError(t, err)
		stop := s.page.RegisterGate("venues", g)
		s.page.RegisterBreaker("api", b)
		s.page.RegisterValues("mine", func() []Value { return make([]Value, 40) })
		require.True(t, s.snapshot("").Gates[0].None)
		done, err := g.Acquire(t.Context(), "up:1")
		require.NoError(t, err)
		done(backoff.Verdict{})
		done, err = g.Acquire(t.Context(), "down:1")
		require.NoError(t, err)
		done(backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Minute})
		got := s.snapshot("")
		require.Equal(t, gateInfo{Name: "venues", Host: "down:1", Limit: 1, Granted: 1, Down: true, Held: time.Now().Add(time.Minute).UTC()}, got.Gates[0])
		require.Equal(t, "up:1", got.Gates[1].Host)
		require.Equal(t, []breakerInfo{{"api", "closed"}}, got.Breakers)
		require.Len(t, got.Values[0].Values, 32)
		require.Contains(t, get(s.page, "/").Body.String(), `<span class="badge away">down</span>`)
		stop()
		require.Empty(t, s.snapshot("").Gates)
	})
}

// A request for one Conn whose ID no Conn has, or can have, does not get the list instead.
func TestUnknownConnIsNotFound(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("feed", s.open(reconnect.Options{}), nil)
		for _, id := range []string{"2", "0", "-1", "x", "", "99999999999999999999", "1 "} {
			query := "?conn=" + url.QueryEscape(id)
			page := get(s.page, "/"+query)
			require.Equal(t, http.StatusNotFound, page.Code, query)
			require.Contains(t, page.Body.String(), "There is no such connection", query)
			require.Contains(t, page.Body.String(), `<a href="?">All connections</a>`, query)
			require.NotContains(t, page.Body.String(), `id="conns"`, query)
			require.NotContains(t, page.Body.String(), `class="sep"`, query)
			data := get(s.page, "/"+query+"&json")
			require.Equal(t, http.StatusNotFound, data.Code, query)
			require.Contains(t, data.Body.String(), "no such connection: ?json has the list", query)
		}
	})
}

// A panic in a function of the program is logged, though Listen has the server.
func TestPanicUnderListenIsLogged(t *testing.T) {
	var b strings.Builder
	old := log.Writer()
	log.SetOutput(&b)
	defer log.SetOutput(old)
	p := newPage(t, nil)
	p.RegisterValues("books", func() []Value { panic("planted") })
	at, err := p.Listen(":0")
	require.NoError(t, err)
	_, err = http.Get(at)
	require.ErrorIs(t, err, io.EOF) // after which the panic has been logged
	require.NoError(t, p.Close())
	log.SetOutput(old)
	require.Contains(t, b.String(), "planted")
}

// A function of the program that hangs does not keep anybody from looking at one Conn.
func TestThePageOfOneConnAsksForNoValues(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		calls := 0
		s.page.RegisterValues("mine", func() []Value { calls++; return nil })
		s.page.Register("feed", s.open(reconnect.Options{}), nil)
		require.Equal(t, 200, get(s.page, "/?conn=1").Code)
		require.Zero(t, calls)
		s.snapshot("conn=1")
		require.Equal(t, 1, calls, "the JSON has them")
	})
}

func TestAGateOfManyHostsIsCut(t *testing.T) {
	g, err := budget.NewGate(nil)
	require.NoError(t, err)
	for i := range 100 {
		_, err := g.Acquire(t.Context(), fmt.Sprintf("host-%d:1", i))
		require.NoError(t, err)
	}
	p := newPage(t, nil)
	p.RegisterGate("venues", g)
	gates := p.snapshot(new(query), time.Now()).Gates
	require.Len(t, gates, 64)
	require.Equal(t, 36, gates[63].More)
	require.Contains(t, get(p, "/").Body.String(), "and 36 more")
}

// A name that is HTML, from a program that takes it from somewhere, is text.
func TestNamesAreText(t *testing.T) {
	const name = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`
	inBubble(t, &Options{Title: name}, func(t *testing.T, s *scene) {
		s.page.Register(name, s.open(reconnect.Options{}), nil)
		g, _ := budget.NewGate(nil)
		_, _ = g.Acquire(t.Context(), name)
		s.page.RegisterGate(name, g)
		s.page.RegisterValues(name, func() []Value { return []Value{{name, name}} })
		targets := []string{
			"/", "/?conn=1", "/?" + strings.ReplaceAll(name, " ", "+"), "/?show=" + url.QueryEscape(name),
		}
		for _, target := range targets {
			body := get(s.page, target).Body.String()
			require.NotContains(t, body, "<img", target)
			require.NotContains(t, body, "<script>alert", target)
			require.Contains(t, body, html.EscapeString(name)[:20], target)
		}
	})
}

func TestAnEmptyPageSaysWhatToDo(t *testing.T) {
	require.Contains(t, get(newPage(t, nil), "/").Body.String(), "No connection is registered")
}

// crowd opens n Conns over a network in memory, of which every tenth is away.
func crowd(t *testing.T, p *Page, n int) []*reconnect.Conn {
	conns := make([]*reconnect.Conn, n)
	for i := range conns {
		dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			if i%10 == 0 {
				return nil, errLost
			}
			return conntest.NewFake(nil).Conn(), nil
		})
		c, err := reconnect.New(dial, &reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) {},
			Run:       reconnect.RunOptions{Policy: every(time.Hour)},
		})
		require.NoError(t, err)
		conns[i] = c
	}
	synctest.Wait()
	for i, c := range conns {
		p.Register(fmt.Sprintf("conn %d", i), c, nil)
	}
	return conns
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A page shows a hundred of ten thousand, or 4000 if all are requested. To find them is cheap.
func TestTenThousandConnsAreCheap(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		conns := crowd(t, s.page, 10000)
		got := s.snapshot("")
		require.Equal(t, countsInfo{All: 10000, Away: 1000, Ready: 9000}, got.Counts)
		require.Equal(t, []int{10000, 100}, []int{got.Found, len(got.Conns)})
		got = s.snapshot("show=away&all")
		require.Equal(t, []int{1000, 1000}, []int{got.Found, len(got.Conns)})
		var body string
		page := allocated(func() { body = get(s.page, "/?show=away").Body.String() })
		require.Contains(t, body, "The worst 100 of 1,000: 900 are not shown")
		require.Contains(t, body, `<a href="?show=away&amp;all">Show all</a>`)
		require.NotContains(t, get(s.page, "/?show=away&all").Body.String(), "not shown")
		require.Less(t, len(body), 300_000)
		got = s.snapshot("all")
		require.Equal(t, []int{10000, 4000}, []int{got.Found, len(got.Conns)})
		all := get(s.page, "/?all").Body.String()
		require.Equal(t, 4000, strings.Count(all, `<th scope="row"><a href="?conn=`))
		require.Contains(t, all, "The worst 4,000 of 10,000: 6,000 are not shown.</p>")
		t.Logf("a page has %d bytes and allocates %d", len(body), page)
		if !raceEnabled {
			require.Less(t, page, uint64(20<<20))
		}
		for _, c := range conns {
			c.Close()
		}
		for _, c := range conns {
			<-c.Done()
		}
	})
}

// The figures are those of the documentation of the package.
func TestARegistrationIsSmall(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
	heap := func() uint64 {
		synctest.Wait() // what is under way has memory of its own
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	inBubble(t, nil, func(t *testing.T, s *scene) {
		const n = 500
		conns := make([]*reconnect.Conn, n)
		for i := range conns {
			conns[i] = s.open(reconnect.Options{})
			s.accept()
		}
		lose := func() { // often enough to fill the rings
			for range 40 {
				for _, c := range conns {
					c.Redial(c.Status().Session, nil)
				}
				for range conns {
					s.accept()
				}
			}
		}
		lose() // a Conn that was lost has more memory of its own, too
		before := heap()
		for i, c := range conns {
			s.page.Register(fmt.Sprint(i), c, nil)
		}
		fresh := (heap() - before) / n
		lose()
		full := (heap() - before) / n
		t.Logf("a registration takes %d bytes, and %d with full rings", fresh, full)
		require.Less(t, fresh, uint64(3000))
		require.Less(t, full, uint64(12000))
		runtime.KeepAlive(s.page)
	})
}

func TestListenServesThePageUntilClose(t *testing.T) {
	p := newPage(t, nil)
	url, err := p.Listen(":0")
	require.NoError(t, err)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/$`, url)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(body), "</html>")
	require.NoError(t, p.Close())
	_, err = net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/"))
	require.Error(t, err)
	_, err = p.Listen(":0")
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestListenSaysWhatIsWrongWithTheAddress(t *testing.T) {
	p := newPage(t, nil)
	_, err := p.Listen("6060")
	require.EqualError(t, err, `debug: the address "6060" has not the form host:port, such as :6060`)
	first, err := p.Listen("localhost:0")
	require.NoError(t, err)
	_, err = p.Listen(strings.Trim(first, "htp:/"))
	require.ErrorContains(t, err, "debug: listen tcp 127.0.0.1:")
}

// All addresses of a machine are no name that a browser could ask for, and that the page would answer.
func TestTheURLOfAListenerIsOneOfThisMachine(t *testing.T) {
	for want, ip := range map[string]net.IP{
		"http://localhost:7/": net.IPv4zero,
		"http://127.0.0.1:7/": net.IPv4(127, 0, 0, 1),
		"http://[::1]:7/":     net.IPv6loopback,
	} {
		require.Equal(t, want, urlOf(&net.TCPAddr{IP: ip, Port: 7}))
	}
	require.Equal(t, "http://localhost:8/", urlOf(&net.TCPAddr{IP: net.IPv6unspecified, Port: 8}))
}

// stuck is a browser that does not read until it is closed.
type stuck struct {
	*httptest.ResponseRecorder
	closed chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.closed
	return s.ResponseRecorder.Write(b)
}

// A browser that does not read holds up itself: the connections continue, and others see them.
func TestABrowserThatDoesNotReadHoldsUpNobody(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("feed", s.open(reconnect.Options{}), nil)
		browser := &stuck{httptest.NewRecorder(), make(chan struct{})}
		done := make(chan struct{})
		go func() { s.page.ServeHTTP(browser, request(http.MethodGet, "/")); close(done) }()
		synctest.Wait()
		for range 10 {
			s.accept().Fail(errLost)
		}
		synctest.Wait()
		require.Equal(t, uint64(10), s.one().Session)
		require.NoError(t, s.page.Close())
		close(browser.closed)
		<-done
	})
}
