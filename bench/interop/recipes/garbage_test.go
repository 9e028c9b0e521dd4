//go:build linux

package recipes_test

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/internal/server"
)

// garbage is what a server writes to a new connection. It may read before.
type garbage func(c net.Conn) string

func text(s string) garbage { return func(net.Conn) string { return s } }

// upgraded is a message of WebSocket with at most 125 bytes of data.
func upgraded(data string) garbage {
	return func(c net.Conn) string {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return ""
		}
		key := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
			"Sec-WebSocket-Accept: " + base64.StdEncoding.EncodeToString(key[:]) + "\r\n" +
			"Sec-WebSocket-Protocol: mqtt\r\n\r\n" + "\x82" + string(rune(len(data))) + data
	}
}

// anyGarbage is garbage for a client of any protocol.
var anyGarbage = []garbage{
	text(""), text("\x00"), text("not a frame\r\n"),
	text("HTTP/1.1 400 Bad Request\r\n\r\n"), text(strings.Repeat("\xff", 100)),
}

// untilThirty appends messages of the protocol with random content to kinds, so that there are thirty.
func untilThirty(kinds []garbage, framed func(r *rand.Rand, content []byte) garbage) []garbage {
	r := rand.New(rand.NewPCG(1, 0))
	for len(kinds) < 30 {
		content := make([]byte, r.IntN(100))
		for i := range content {
			content[i] = byte(r.Uint32())
		}
		kinds = append(kinds, framed(r, content))
	}
	return kinds
}

const (
	once    = 1           // for the first connection
	forGood = math.MaxInt // for each connection
)

// front is a proxy for a server.
type front struct {
	address string
	passed  atomic.Int64 // connections
	mute    sync.RWMutex // while it is locked, nothing is passed on
}

// newFront sends g, if it is not nil, to the first connections, and passes the others on.
func newFront(t *testing.T, server string, g garbage, connections int) *front {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	f := &front{address: l.Addr().String()}
	go func() { // ends with the listener
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go func() { // ends with the connection, which the cleanup closes
				defer c.Close()
				if n > connections || g == nil {
					f.passed.Add(1)
					f.pass(c, server)
					return
				}
				_, _ = io.WriteString(c, g(c))
				_ = c.(*net.TCPConn).CloseWrite()
				_ = c.SetReadDeadline(time.Now().Add(time.Second)) // so that a reset drops nothing of it
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return f
}

// pass connects c to a server until one of the two has ended.
func (f *front) pass(c net.Conn, server string) {
	s, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	go func() { // ends with s
		_, _ = io.Copy(unless{s, &f.mute}, c)
		s.Close()
	}()
	_, _ = io.Copy(unless{c, &f.mute}, s)
	s.Close()
}

// unless is a Writer that waits while mu is locked.
type unless struct {
	io.Writer
	mu *sync.RWMutex
}

func (w unless) Write(b []byte) (int, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.Writer.Write(b)
}

// badLines are lines for a recipe, of which one is too long, and two are no text. goodLines are those
// that it takes.
var (
	badLines  = []string{"before", strings.Repeat("x", 70_000), "\xff\x00\xfe", "", "after"}
	goodLines = []string{"before", "\xff\x00\xfe", "", "after"}
)

// survive runs a recipe for each of kinds, whose first connection gets that garbage. The recipe must
// then print want for badLines. Six run at the same time. Then each connection gets the garbage. At the end it runs
// one whose server becomes mute, and interrupts it.
func survive(t *testing.T, name, at string, kinds []garbage, args func(address string, n int) []string,
	want ...string) {
	require.Len(t, kinds, 30)
	var first *piped
	n := 0
	for together := range slices.Chunk(kinds, 6) {
		fronts := make([]*front, len(together))
		running := make([]*piped, len(together))
		for i, g := range together {
			fronts[i] = newFront(t, at, g, once)
			if first == nil {
				first = pipe(t, name, args(fronts[i].address, n)...)
				running[i] = first
			} else {
				running[i] = first.twin(args(fronts[i].address, n)...)
			}
			running[i].feed(badLines...)
			n++
		}
		for i, p := range running {
			eventually(t, "all lines come", func() bool { return len(p.lines()) >= len(want) })
			lines := p.lines()
			if name == "postgres" { // without the number of the session, which is 2 if the garbage was a login
				lines[0] = strings.TrimRight(lines[0], "12")
			}
			require.Equal(t, want, lines)
			require.Contains(t, p.read(".notes"), "line left out: longer than 64 KiB")
			require.NotContains(t, p.read(".notes"), "goroutine ")
			require.Positive(t, fronts[i].passed.Load(), "the garbage was not enough")
			p.kill()
		}
	}
	surviveForGood(t, first, at, kinds, args)
	if name == "postgres" {
		return // it leaves Ctrl-C to the system
	}
	best := time.Hour
	for ; n < len(kinds)+interruptAttempts && best >= interruptLimit; n++ {
		f := newFront(t, at, nil, 0)
		p := first.twin(args(f.address, n)...)
		p.feed("one")
		eventually(t, "the line comes", func() bool { return len(p.lines()) == 1 })
		f.mute.Lock()
		best = min(best, p.interrupt()) // it waits for no answer
		f.mute.Unlock()
	}
	t.Logf("%s ended %v after Ctrl-C, with a mute server", name, best.Round(time.Millisecond))
	require.Less(t, best, interruptLimit)
}

// surviveForGood runs a twin of a recipe for each of kinds, which each of its connections gets. The recipe must dial
// again or exit with code 1, report why, and print nothing. Six run at the same time.
func surviveForGood(t *testing.T, recipe *piped, at string, kinds []garbage,
	args func(address string, n int) []string) {
	n, began := len(kinds), time.Now()
	start := func(g garbage) *piped {
		n++
		return recipe.twin(args(newFront(t, at, g, forGood).address, n)...)
	}
	for together := range slices.Chunk(kinds, 6) {
		var running []*piped
		for _, g := range together {
			running = append(running, start(g))
		}
		for i, p := range running {
			best := requireSound(t, p)
			for attempt := 1; attempt < interruptAttempts && best >= interruptLimit; attempt++ {
				best = min(best, requireSound(t, start(together[i])))
			}
			require.Less(t, best, interruptLimit)
		}
	}
	t.Logf("%d kinds for good took %v", len(kinds), time.Since(began).Round(time.Second))
}

// requireSound requires that a recipe whose connections get nothing but garbage dials again or exits with code 1,
// reports why, and prints nothing. It returns how long a recipe that has not exited took to end after Ctrl-C.
func requireSound(t *testing.T, p *piped) (took time.Duration) {
	t.Helper()
	eventually(t, "the second connection fails, or the recipe ends", func() bool {
		return p.ended() || strings.Count(p.read(".notes"), "waiting to redial") > 1
	})
	switch {
	case p.ended():
		require.Equal(t, 1, p.exitCode())
	case filepath.Base(p.binary) == "postgres": // it leaves Ctrl-C to the system
		p.kill()
	default:
		took = p.interrupt()
	}
	require.Empty(t, p.read(".out"))
	require.Regexp(t, `(cause|err)="?[^ "]`, p.read(".notes"))
	require.NotContains(t, p.read(".notes"), "goroutine ")
	return took
}

func TestAMQPAfterGarbage(t *testing.T) {
	broker := startRabbitMQ(t)
	kinds := append(anyGarbage[:len(anyGarbage):len(anyGarbage)],
		text("AMQP\x00\x00\x09\x01"),                                 // the server wants another version
		text("\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x0a"),         // connection.start, cut off
		text("\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x32\xce"),     // connection.close, without arguments
		text("\x01\x00\x07\x00\x10\x00\x00"),                         // a frame of 1 MB that does not come
		text("\x08\x00\x00\x00\x00\x00\x00\xce"),                     // a heartbeat
		text("\x09\x00\x00\x00\x00\x00\x01\x00\x00"),                 // an unknown type, and no end
		text("\x01\x00\x00\x00\x00\x00\x05\x00\x0a\x00\x0a\x00\x00"), // another end than 0xce
	)
	kinds = untilThirty(kinds, func(r *rand.Rand, content []byte) garbage {
		// A frame of channel 0: its type, the size of its content, the content, and the end of the frame.
		return text(fmt.Sprintf("%c\x00\x00\x00\x00\x00%c%s\xce", 1+r.IntN(4), len(content), content))
	})
	survive(t, "amqp", broker.Address, kinds, func(address string, n int) []string {
		return []string{"-url", "amqp://guest:guest@" + address + "/", "-queue", fmt.Sprint("garbage-", n)}
	}, goodLines...)
}

func TestMQTTAfterGarbage(t *testing.T) {
	broker := startMosquitto(t)
	kinds := append(anyGarbage[:len(anyGarbage):len(anyGarbage)],
		upgraded(""),                     // an empty message
		upgraded("\x20"),                 // CONNACK, cut off
		upgraded("\x20\x00"),             // CONNACK, without its fields
		upgraded("\x20\x03\x00\x00\x05"), // CONNACK with properties that do not come
		upgraded("\x20\xff\xff\xff\xff"), // a length of five bytes
		upgraded("\x30\x02\x00\x09"),     // PUBLISH before CONNACK, cut off
		upgraded("\x00\x00"),             // an unknown type
		upgraded("\xe0\x02\x8e\x00"),     // DISCONNECT: the session was taken over
	)
	kinds = untilThirty(kinds, func(r *rand.Rand, content []byte) garbage {
		return upgraded(string([]byte{byte(r.IntN(16) << 4), byte(len(content))}) + string(content))
	})
	survive(t, "mqtt", broker.Address, kinds, func(address string, n int) []string {
		name := fmt.Sprint("garbage-", n)
		return []string{"-url", "ws://" + address, "-id", name, "-topic", name}
	}, goodLines...)
}

func TestPostgresAfterGarbage(t *testing.T) {
	s, url := server.Postgres(t)
	store(t, url, settings, set("after", 7))
	kinds := append(anyGarbage[:len(anyGarbage):len(anyGarbage)],
		text("R\x00\x00\x00"),                                       // AuthenticationOk, cut off
		text("R\x00\x00\x00\x03"),                                   // a length that is too short
		text("R\x00\x10\x00\x00"),                                   // a message of 1 MB that does not come
		text("R\x00\x00\x00\x08\x00\x00\x00\x63"),                   // an unknown way to log in
		text("E\x00\x00\x00\x04"),                                   // an error without fields
		text("Z\x00\x00\x00\x05I"),                                  // ReadyForQuery before the login
		text("R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I"), // a login, and then the end
	)
	kinds = untilThirty(kinds, func(r *rand.Rand, content []byte) garbage {
		return text(fmt.Sprintf("%c\x00\x00\x00%c%s", "RSKZENDTC"[r.IntN(9)], 4+len(content), content))
	})
	survive(t, "postgres", s.Address, kinds, func(address string, _ int) []string {
		address = strings.Replace(url, s.Address, address, 1)
		return []string{"-url", address + "?sslmode=disable"} // with TLS the garbage would answer the request for it
	}, "copied by session ", "value before <nil> false", "value \xff\x00\xfe <nil> false",
		"value  <nil> false", "value after 7 true")
}
