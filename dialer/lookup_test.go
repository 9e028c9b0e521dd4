package dialer

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// answersAfter is a resolver that answers for each family after some time: with addresses, or else that there
// is no such host. A family without an entry is never answered for.
type answersAfter map[string]struct {
	after time.Duration
	addrs []netip.Addr
}

var errNoSuchHost = &net.DNSError{Err: "no such host", Name: "feed.test", IsNotFound: true}

func (r answersAfter) LookupNetIP(ctx context.Context, network, _ string) ([]netip.Addr, error) {
	answer, ok := r[network]
	if !ok {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	select {
	case <-time.After(answer.after):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if answer.addrs == nil {
		return nil, errNoSuchHost
	}
	return answer.addrs, nil
}

// RFC 8305, section 3. A lookup has 12 s of the 16 s for connecting.
func TestFirstFamilyThatIsFoundIsDialed(t *testing.T) {
	const ms = time.Millisecond
	v4, v6, none := addrs("192.0.2.1"), addrs("2001:db8::1"), []netip.Addr(nil)
	late := "lookup feed.test: no name server answered within 12s"
	for name, c := range map[string]struct {
		resolver answersAfter
		network  string
		want     []netip.Addr
		err      string
		took     time.Duration
	}{
		"IPv6 is never answered": {answersAfter{"ip4": {0, v4}}, "tcp", v4, "", 50 * ms},
		"IPv4 is never answered": {answersAfter{"ip6": {ms, v6}}, "tcp", v6, "", ms},
		"IPv6 comes a little later": {
			answersAfter{"ip4": {0, v4}, "ip6": {49 * ms, v6}},
			"tcp", addrs("2001:db8::1", "192.0.2.1"), "", 49 * ms,
		},
		"IPv6 comes much later": {answersAfter{"ip4": {0, v4}, "ip6": {51 * ms, v6}}, "tcp", v4, "", 50 * ms},
		"IPv4 comes later":      {answersAfter{"ip6": {0, v6}, "ip4": {ms, v4}}, "tcp", v6, "", 0},
		"there is no IPv6":      {answersAfter{"ip4": {0, v4}, "ip6": {ms, none}}, "tcp", v4, "", ms},
		"there is no IPv4": {
			answersAfter{"ip4": {0, none}, "ip6": {time.Second, v6}},
			"tcp", v6, "", time.Second,
		},
		"both answers have both": {
			answersAfter{
				"ip4": {0, addrs("192.0.2.1", "2001:db8::1")},
				"ip6": {ms, addrs("192.0.2.1", "2001:db8::1")},
			},
			"tcp", addrs("192.0.2.1", "2001:db8::1"), "", 0,
		},
		"mapped addresses are IPv4":   {answersAfter{"ip4": {0, addrs("::ffff:192.0.2.1")}}, "tcp", v4, "", 50 * ms},
		"only IPv4 is wanted":         {answersAfter{"ip4": {0, v4}}, "tcp4", v4, "", 0},
		"only IPv6 is wanted":         {answersAfter{"ip6": {0, v6}}, "tcp6", v6, "", 0},
		"nothing is answered":         {answersAfter{}, "tcp", nil, late, 12 * time.Second},
		"no such host, and no answer": {answersAfter{"ip4": {0, none}}, "tcp", nil, late, 12 * time.Second},
		"no such host": {
			answersAfter{"ip4": {0, none}, "ip6": {ms, none}},
			"tcp", nil, "lookup feed.test: no such host", ms,
		},
		"the answer has no address": {
			answersAfter{"ip4": {0, []netip.Addr{}}},
			"tcp4", nil, "lookup feed.test: no suitable address", 0,
		},
		"no answer, of the only one": {answersAfter{"ip6": {0, v6}}, "tcp4", nil, late, 12 * time.Second},
		"an answer just in time": {
			answersAfter{"ip4": {12*time.Second - 1, v4}},
			"tcp", v4, "", 12 * time.Second,
		},
		"no answer, and a slow answer": {
			answersAfter{"ip6": {11 * time.Second, none}},
			"tcp", nil, late, 12 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				o := (&TCPOptions{LookupNetIP: c.resolver.LookupNetIP}).withDefaults()
				l := o.lookUp(t.Context(), backoff.Rand(), lookupLimit(backoff.DefaultConnect), c.network, "feed.test")
				got, err := l.first()
				require.Equal(t, c.took, time.Since(begun))
				require.Equal(t, c.want, got)
				if c.err != "" {
					require.EqualError(t, err, c.err)
					require.Equal(t, backoff.ReasonDNS, backoff.ReasonOf(err))
					var failure *net.DNSError
					require.ErrorAs(t, err, &failure)
					require.Equal(t, c.err != late, failure.IsNotFound)
					require.Equal(t, c.err == late, failure.IsTimeout)
					require.Equal(t, c.err == late, failure.IsTemporary)
				}
				l.close()
				require.Equal(t, c.took, time.Since(begun), "the other family is not waited for")
			})
		})
	}
}

// No other family is waited for.
func TestDialFailsAsSoonAsItsLastAddressHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, wrong := time.Now(), errors.New("wrong")
		o := (&TCPOptions{
			LookupNetIP: answersAfter{"ip4": {0, addrs("127.0.0.1")}}.LookupNetIP,
			Control:     func(string, string, syscall.RawConn) error { return wrong },
		}).withDefaults()
		_, err := o.dial(t.Context(), backoff.Rand(), none, 0, "tcp4", "feed.test:1")
		require.ErrorIs(t, err, wrong)
		require.Zero(t, time.Since(begun))
	})
}

func TestLookupThatDoesNotReturnIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, lookUp := range map[string]func(){"goexit": runtime.Goexit, "panic": func() { panic("boom") }} {
			o := (&TCPOptions{LookupNetIP: func(context.Context, string, string) ([]netip.Addr, error) {
				lookUp()
				return nil, nil
			}}).withDefaults()
			_, err := o.dial(t.Context(), backoff.Rand(), none, 0, "tcp", "feed.test:1")
			require.Equal(t, name == "panic", is[*panicError](err))
			require.Equal(t, name == "goexit", errors.Is(err, errGoexit))
		}
	})
}

func TestErrorOfALookupThatHangsNamesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := TCPOptions{LookupNetIP: answersAfter{}.LookupNetIP}
		w := &WebSocket{URL: "ws://feed.test/v1", TCP: hangs}
		e := failToDial(t, t.Context(), w, 12*time.Second)
		require.EqualError(t, e, "dial ws://feed.test/v1: lookup feed.test: no name server answered within 12s")
		require.Equal(t, backoff.ClassRetry, backoff.Classify(e).Class)
		f := &Framed{Address: "feed.test:1", Framer: conn.Lines{}, TCP: hangs, ConnectTimeout: time.Second}
		e = failToDial(t, t.Context(), f, 750*time.Millisecond)
		require.EqualError(t, e, "dial tcp://feed.test:1: lookup feed.test: no name server answered within 750ms")
		d := &Dialer{TCP: hangs, ConnectTimeout: 8 * time.Second, Policy: backoff.Limit(nil, 0, 1)}
		_, err := d.DialContext(t.Context(), "tcp", "feed.test:1")
		require.ErrorContains(t, err, "lookup feed.test: no name server answered within 6s")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		d = &Dialer{TCP: hangs, ConnectTimeout: -1, MaxElapsed: -1}
		_, err = d.DialContext(ctx, "tcp", "feed.test:1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorAs(t, err, new(*net.DNSError))
	})
}

// The name server answers for IPv6 only while IPv4, which has no listener, is being dialed.
func TestFamilyThatIsFoundLaterIsDialed(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	begun, dialed := make(chan struct{}), ""
	o := TCPOptions{
		LookupNetIP: func(_ context.Context, network, _ string) ([]netip.Addr, error) {
			if network == "ip4" {
				return addrs("127.0.0.1"), nil
			}
			<-begun
			return addrs("::1"), nil
		},
		Control: func(_, address string, _ syscall.RawConn) error {
			if dialed += address + " "; address[0] == '1' {
				close(begun)
			}
			return nil
		},
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	o.try(t, "feed.test:"+port)
	require.Equal(t, "127.0.0.1:"+port+" [::1]:"+port+" ", dialed)
}

const (
	typeA    = 1
	typeAAAA = 28
)

// nameServer answers on a port of UDP with an address for each type of record, or with "no such host" if
// the address is empty. It does not answer for other types. It returns a resolver that queries it.
func nameServer(t *testing.T, records map[uint16]string) *net.Resolver {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() { // ends when pc is closed
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer := answerTo(buf[:n], records); answer != nil {
				_, _ = pc.WriteTo(answer, from)
			}
		}
	}()
	var mu sync.Mutex
	var asked []net.Conn
	t.Cleanup(func() {
		pc.Close()
		<-done
		mu.Lock()
		defer mu.Unlock()
		for _, c := range asked {
			c.Close() // the resolver reads for 5 s after its context is done
		}
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "udp", pc.LocalAddr().String())
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, c)
		}
		return c, err
	}}
}

// answerTo returns the answer to a query (RFC 1035, section 4.1), or nil.
func answerTo(query []byte, records map[uint16]string) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // the root, the type and the class
	kind := binary.BigEndian.Uint16(query[end-4:])
	address, ok := records[kind]
	if !ok {
		return nil
	}
	a := append([]byte(nil), query[:end]...)
	copy(a[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // a response to one question, without an answer
	if address == "" {
		a[3] |= 3 // no such name
		return a
	}
	data := netip.MustParseAddr(address).AsSlice()
	a[7] = 1
	a = append(a, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 60, 0, byte(len(data)))
	return append(a, data...)
}

// Grpc/grpc#35638, systemd#22575: name servers that never answer for one of both families.
func TestNameServerNeedsToAnswerForOneFamilyOnly(t *testing.T) {
	for name, c := range map[string]struct {
		at      string
		records map[uint16]string
	}{
		"A":                   {"127.0.0.1:0", map[uint16]string{typeA: "127.0.0.1"}},
		"AAAA":                {"[::1]:0", map[uint16]string{typeAAAA: "::1"}},
		"both, IPv4 listens":  {"127.0.0.1:0", map[uint16]string{typeA: "127.0.0.1", typeAAAA: "::1"}},
		"both, IPv6 listens":  {"[::1]:0", map[uint16]string{typeA: "127.0.0.1", typeAAAA: "::1"}},
		"A, and no such AAAA": {"127.0.0.1:0", map[uint16]string{typeA: "127.0.0.1", typeAAAA: ""}},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", c.at)
			if err != nil {
				t.Skip(err)
			}
			defer l.Close()
			port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
			o := TCPOptions{LookupNetIP: nameServer(t, c.records).LookupNetIP}
			f := &Framed{
				Address:        "feed.test:" + port,
				Framer:         conn.Lines{},
				TCP:            o,
				ConnectTimeout: 4 * time.Second, // package net waits for 10 s
			}
			got, err := f.Dial(t.Context())
			require.NoError(t, err)
			require.NoError(t, got.CloseNow())
		})
	}
	f := &Framed{
		Address: "feed.test:1", Framer: conn.Lines{}, TCP: TCPOptions{LookupNetIP: nameServer(t, nil).LookupNetIP},
		ConnectTimeout: 4 * time.Second, // leaves a second after the lookup's limit
	}
	_, err := f.Dial(t.Context())
	require.EqualError(t, err, "dial tcp://feed.test:1: lookup feed.test: no name server answered within 3s")
}
