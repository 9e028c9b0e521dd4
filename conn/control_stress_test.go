package conn

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// TestControlFramesAtRandom: a peer sends pings, pongs, messages, fragments and close frames, takes what we
// send at once, slowly, late or never, and hangs up or resets; meanwhile the client reads, writes, pings and
// closes. In the end the bytes of both directions are judged.
func TestControlFramesAtRandom(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("CONN_ROUNDS"))
	seed, _ := strconv.ParseUint(os.Getenv("CONN_SEED"), 10, 64)
	if rounds == 0 {
		rounds = 150
	}
	tally := map[string]int{}
	for i := range rounds {
		s := seed + uint64(i)
		ok := t.Run(strconv.FormatUint(s, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newRound(t, s, tally).run() })
		})
		if !ok {
			break
		}
	}
	fmt.Println(rounds, "rounds from", seed, tally)
}

type round struct {
	t       *testing.T
	seed    uint64
	tally   map[string]int
	r       *rand.Rand
	l       *link
	mode    websocket.CompressionMode
	options *WebSocketOptions

	pings    []string // sent by the peer, in order
	messages []string // sent by the peer, whole
	pongs    []string // of the peer
	goodbye  bool     // the peer has sent a close frame behind all messages
	broken   bool     // or a frame that breaks the rules
	hungUp   bool
	sent     atomic.Bool // all of that

	mu     sync.Mutex
	fates  map[string]error // of our messages, by their text
	order  [][]string       // texts of each writer in order
	read   []string
	end    error  // of Read
	pinged int    // pings of ours that were answered
	our    string // how we end it

	speed   time.Duration // by which all times of the plan are divided
	sockets *sockets      // or nil, for a round in virtual time
}

func newRound(t *testing.T, seed uint64, tally map[string]int) *round {
	x := drawRound(t, seed, tally)
	x.l = dial(t, x.options, x.mode)
	return x
}

// drawRound returns a round that is not connected yet.
func drawRound(t *testing.T, seed uint64, tally map[string]int) *round {
	r := rand.New(rand.NewPCG(seed, 99))
	modes := []websocket.CompressionMode{
		websocket.CompressionDisabled,
		websocket.CompressionDisabled,
		websocket.CompressionContextTakeover,
		websocket.CompressionNoContextTakeover,
	}
	x := &round{t: t, seed: seed, r: r, tally: tally, mode: modes[r.IntN(4)], fates: map[string]error{}, speed: 1}
	x.options = &WebSocketOptions{Limits: Limits{
		ReadLimit:      1 << 17,
		WriteTimeout:   time.Duration(1+r.IntN(9)) * second,
		MessageTimeout: 60 * second,
	}}
	if r.IntN(5) == 0 {
		x.options.WriteTimeout = -1
	}
	return x
}

func (x *round) pause(most time.Duration) { x.sleep(time.Duration(x.r.Int64N(int64(most)))) }

func (x *round) sleep(d time.Duration) { time.Sleep(d / x.speed) }

// settle lets everything happen that is due.
func (x *round) settle() {
	if x.sockets == nil {
		synctest.Wait()
		return
	}
	time.Sleep(20 * time.Millisecond)
}

// source returns a generator of its own for a goroutine.
func (x *round) fork() *rand.Rand { return rand.New(rand.NewPCG(x.r.Uint64(), x.r.Uint64())) }

func (x *round) frames() (stream []string) {
	r := x.r
	word := func(prefix string, n int) string {
		return fmt.Sprintf("%s%d.", prefix, len(x.pings)+len(x.messages)*1000) + strings.Repeat("x", n)
	}
	sizes := []int{0, 1, 20, 100, 300, 4000, 0, 1, 20, 100, 300, 4000, 40_000}
	pingFrame := func() {
		p := word("p", r.IntN(90))
		x.pings = append(x.pings, p)
		stream = append(stream, frame(fin|ping, p))
	}
	for range 1 + r.IntN(25) {
		switch r.IntN(12) {
		case 0, 1, 2, 3:
			pingFrame()
		case 4:
			for range 1 + r.IntN(30)*r.IntN(30) {
				pingFrame()
			}
		case 5:
			stream = append(stream, frame(fin|pong, word("o", r.IntN(90))))
		case 6, 7, 8:
			m := word("m", sizes[r.IntN(len(sizes))])
			x.messages = append(x.messages, m)
			if x.mode != websocket.CompressionDisabled && r.IntN(2) == 0 {
				var b bytes.Buffer
				w, _ := flate.NewWriter(&b, 1)
				io.WriteString(w, m)
				w.Flush()
				stream = append(stream, frame(fin|rsv1|text, strings.TrimSuffix(b.String(), deflateTail)))
				continue
			}
			stream = append(stream, frame(fin|text, m))
		case 9, 10:
			m := word("f", sizes[r.IntN(len(sizes))])
			x.messages = append(x.messages, m)
			op := byte(text)
			for part := range slices.Chunk([]byte(m), 1+len(m)/(1+r.IntN(4))) {
				stream = append(stream, frame(op, string(part)))
				op = 0
				for range r.IntN(3) {
					pingFrame()
				}
			}
			stream = append(stream, frame(fin, ""))
		case 11:
			stream = append(stream, "") // a pause
		}
	}
	switch r.IntN(8) {
	case 0, 1, 2:
		x.goodbye = true
		payloads := []string{"", "\x03\xe8", "\x0f\xa1bye", "\x03\xf4redial/1 wait=30s"}
		stream = append(stream, frame(fin|close8, payloads[r.IntN(4)]))
	case 3:
		x.broken = true
		broken := []string{
			frame(ping, ""),
			frame(fin|ping, strings.Repeat("x", 126)),
			frame(fin|0xb, ""),
			frame(fin|3, ""),
			frame(fin|0x10|text, "a"),
			frame(fin, "nothing"),
			frame(fin|close8, "x"),
			frame(fin|close8, "\x03\xed"),
			"\x89\x80abcd",
			frame(fin|rsv1|ping, ""),
			"\x8a\x7e\x00\x01x",
		}
		stream = append(stream, broken[r.IntN(11)])
	}
	return stream
}

func (x *round) run() {
	r, l, t := x.r, x.l, x.t
	stream := x.frames()
	var wg sync.WaitGroup

	// What the peer takes.
	window := "open"
	opens := time.Duration(0)
	switch r.IntN(5) {
	case 0:
		window, opens = "late", time.Duration(r.IntN(12_000))*time.Millisecond
		l.client().fill(r.IntN(500))
	case 1:
		window, opens = "slow", time.Duration(r.IntN(20_000))*time.Millisecond
		l.client().fill(r.IntN(500))
	case 2:
		if r.IntN(3) == 0 {
			window = "shut"
			l.client().fill(r.IntN(3000))
		}
	}
	rate := 1 + r.IntN(2000)
	if opens > 0 {
		wg.Go(func() {
			for start := time.Now(); time.Since(start) < opens/x.speed; {
				if window == "slow" {
					l.client().fill(rate)
				}
				x.sleep(77 * time.Millisecond)
			}
			l.client().fill(1 << 30)
		})
	}

	// What the peer sends: the stream, in pieces, and then answers to our pings.
	pr := x.fork()
	hang, answers := pr.IntN(6), pr.IntN(3)
	wg.Go(func() {
		all := strings.Join(stream, "")
		for len(all) > 0 {
			n := min(len(all), 1+pr.IntN([]int{3, 300, 60_000}[pr.IntN(3)]))
			if _, err := l.raw.Write([]byte(all[:n])); err != nil {
				return
			}
			all = all[n:]
			if pr.IntN(4) == 0 {
				x.sleep(time.Duration(pr.IntN(50)) * time.Millisecond)
			}
		}
		x.sent.Store(true)
		switch hang {
		case 0:
			x.hungUp = true
			l.raw.Close()
			return
		case 1:
			x.hungUp = true
			l.raw.reset(errors.New("connection reset"))
			return
		}
		if x.goodbye || x.broken || answers == 0 {
			return
		}
		at := 0
		for range 200 {
			x.sleep(100 * time.Millisecond)
			l.raw.in.mu.Lock()
			data := slices.Clone(l.raw.in.data[at:])
			if len(data) == 0 && l.raw.in.eof != nil {
				l.raw.in.mu.Unlock()
				return
			}
			l.raw.in.mu.Unlock()
			for len(data) >= 6 {
				first, size := sentFrame(data)
				if size > len(data) {
					break
				}
				if first == fin|ping && pr.IntN(3) > 0 {
					p := payloadOf(data[:size])
					x.mu.Lock()
					x.pongs = append(x.pongs, p)
					x.mu.Unlock()
					l.send(frame(fin|pong, p))
				}
				if first == fin|close8 {
					l.send(frame(fin|close8, "\x03\xe8"))
					return
				}
				at += size
				data = data[size:]
			}
		}
	})

	// The reader.
	rr := x.fork()
	follow, lazy := rr.IntN(2) == 0, rr.IntN(3) == 0
	wg.Go(func() {
		buf := make([]byte, 0, 200)
		for {
			if follow && l.Woken() {
				if m, _, whole := l.ReadWhole(buf); whole {
					x.read = append(x.read, string(m.Data))
					continue
				}
			}
			m, err := l.Read(buf)
			if err == ErrWoken {
				continue
			}
			if err != nil {
				x.end = err
				if _, again := l.Read(buf); again == nil || again.Error() != err.Error() {
					t.Errorf("Read returned %v and then %v", err, again)
				}
				return
			}
			x.read = append(x.read, string(m.Data))
			if lazy {
				x.sleep(time.Duration(rr.IntN(300)) * time.Millisecond)
			}
		}
	})
	if follow {
		wg.Go(func() {
			for range 5 {
				l.Wake()
				x.sleep(50 * time.Millisecond)
			}
		})
	}

	// Writers and pings.
	x.order = make([][]string, r.IntN(4))
	for w := range x.order {
		wr := x.fork()
		wg.Go(func() {
			for i := range 1 + wr.IntN(12) {
				var ms []Message
				for j := range 1 + wr.IntN(3)*wr.IntN(20) {
					sizes := []int{0, 10, 200, 600, 5000, 10, 200, 600, 0, 10, 200, 600, 5000, fragment, 3*fragment + 1}
					size := sizes[wr.IntN(15)]
					text := fmt.Sprintf("w%d.%d.%d ", w, i, j) + strings.Repeat("y", size)
					ms = append(ms, BinaryMessage([]byte(text)))
					x.mu.Lock()
					x.order[w] = append(x.order[w], text)
					x.mu.Unlock()
				}
				n, err := l.WriteBatch(ms)
				x.mu.Lock()
				for j, m := range ms {
					var fate error
					switch {
					case j == n:
						fate = err
					case j > n:
						fate = ErrNotWritten
					}
					x.fates[string(m.Data)] = fate
				}
				x.mu.Unlock()
				if err != nil {
					return
				}
				x.sleep(time.Duration(wr.IntN(200)) * time.Millisecond)
			}
		})
	}
	for range r.IntN(4) {
		gr := x.fork()
		wg.Go(func() {
			for range 1 + gr.IntN(4) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+gr.IntN(4000))*time.Millisecond/x.speed)
				err := l.Ping(ctx)
				cancel()
				if err == nil {
					x.mu.Lock()
					x.pinged++
					x.mu.Unlock()
				}
			}
		})
	}

	// The end.
	x.pause(6 * second)
	if r.IntN(3) == 0 {
		x.sleep(30 * second)
	}
	before := l.wire.ended()
	x.our = []string{"close", "close", "now", "cut"}[r.IntN(4)]
	if x.our != "now" && x.our != "cut" && r.IntN(2) == 0 {
		x.settle()
		x.sleep(40 * second) // everything has ended except what has no limit
		x.settle()
		before = l.wire.ended()
	}
	x.settle()
	settled := x.sockets == nil && x.consumed() && x.sent.Load() &&
		l.wire.ended() == nil && l.wire.stream.out.failure() == nil && x.stuck() == 0
	var closed error
	switch x.our {
	case "close":
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+r.IntN(8000))*time.Millisecond/x.speed)
		closed = l.Close(ctx, 1000, "bye")
		cancel()
	case "cut":
		l.wire.Cut()
	}
	l.CloseNow()
	l.wire.stream.out.mu.Lock()
	if o := l.wire.stream.out.out; o != nil && o.control {
		t.Error("a goroutine flushes after CloseNow")
	}
	l.wire.stream.out.mu.Unlock()
	wg.Wait()
	if x.sockets != nil {
		x.sockets.end(l)
	}
	x.settle()
	if o := l.wire.stream.out.out; o != nil {
		t.Errorf("the sender holds %d users after the end", o.users)
	}
	x.judge(window, before, closed, settled)
}

// consumed reports whether the client has read all that has come, and waits for more.
func (x *round) consumed() bool {
	l := x.l
	l.raw.out.mu.Lock()
	defer l.raw.out.mu.Unlock()
	return len(l.wire.stream.win) == 0 && len(l.raw.out.data) == 0 && l.wire.reads.state.Load() == reader
}

// stuck is 0 if all that was added is in the kernel.
func (x *round) stuck() time.Duration {
	s := &x.l.wire.stream.out
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out != nil && (len(s.out.buf) > 0 || s.out.pushing) {
		return 1
	}
	return 0
}

func payloadOf(f []byte) string {
	head := 2
	switch f[1] & 0x7f {
	case 126:
		head = 4
	case 127:
		head = 10
	}
	p := slices.Clone(f[head+4:])
	mask(p, f[head:head+4])
	return string(p)
}

// mayLose reports whether our close frame may not have arrived over sockets: because an end of the connection has
// discarded what was in the kernel, or the kernel has not taken it in time.
func (x *round) mayLose() bool {
	return x.sockets != nil && (x.our != "close" || x.hungUp || x.l.wire.stream.out.failure() == errControl)
}

func (x *round) judge(window string, before, closed error, settled bool) {
	t, l := x.t, x.l
	fail := func(format string, a ...any) {
		t.Helper()
		t.Errorf("seed %d, window %s, our %s, before %v, closed %v, read ended %v, goodbye %v, broken %v, hung up %v: %s",
			x.seed, window, x.our, before, closed, x.end, x.goodbye, x.broken, x.hungUp, fmt.Sprintf(format, a...))
	}
	// What we have sent.
	var pongs, texts []string
	var message []byte
	var window32 []byte
	inside, compressed, torn := false, false, ""
	closes := 0
	data := l.raw.in.data
	for len(data) > 0 {
		if len(data) < 2 {
			torn = "header"
			break
		}
		if data[1]&0x80 == 0 {
			fail("a frame without a mask")
			return
		}
		need := 6
		switch data[1] & 0x7f {
		case 126:
			need = 8
		case 127:
			need = 14
		}
		if len(data) < need {
			torn = "header"
			break
		}
		first, size := sentFrame(data)
		if size > len(data) {
			torn = "payload"
			break
		}
		p := payloadOf(data[:size])
		data = data[size:]
		op := first & 0xf
		if closes > 0 {
			fail("frame %x behind our close frame", first)
		}
		switch {
		case op >= opClose:
			if first&0xf0 != fin || len(p) > 125 {
				fail("control frame %x of %d bytes", first, len(p))
			}
			switch op {
			case opClose:
				closes++
			case opPong:
				pongs = append(pongs, p)
			}
			continue
		case op == opContinuation != inside:
			fail("frame %x, inside %v", first, inside)
		}
		if op != opContinuation {
			message, compressed = nil, first&rsv1 != 0
		}
		message = append(message, p...)
		if inside = first&fin == 0; !inside {
			if compressed {
				whole := strings.NewReader(string(message) + deflateTail + "\x01\x00\x00\xff\xff")
				fr := flate.NewReaderDict(whole, window32)
				plainText, err := io.ReadAll(fr)
				if err != nil {
					fail("a compressed message: %v", err)
				}
				message = plainText
				if x.mode == websocket.CompressionContextTakeover {
					window32 = append(window32, plainText...)
					window32 = slices.Clone(window32[max(0, len(window32)-windowSize):])
				}
			}
			texts = append(texts, string(message))
		}
	}
	if torn != "" {
		x.tally["torn"]++
	}
	// Pongs answer pings, in their order, each once.
	i := 0
	for _, p := range pongs {
		j := slices.Index(x.pings[i:], p)
		if j < 0 {
			fail("pong %q answers nothing, or too late", p)
			return
		}
		i += j + 1
	}
	if i < len(x.pings) {
		x.tally["pings without an answer"]++
	}
	// Messages that were written are there, in order; the others are not.
	for _, order := range x.order {
		at, lost := 0, false
		for _, text := range order {
			fate, known := x.fates[text]
			if !known {
				continue
			}
			j := slices.Index(texts[at:], text)
			switch {
			case fate == nil && j < 0 && x.sockets != nil: // bytes in a kernel end with a reset
				lost = true
			case j >= 0 && lost:
				fail("message %.20q is there, but not one before it", text)
			case fate == nil && j < 0:
				fail("message %.20q of %d bytes was written, but is not there", text, len(text))
			case errors.Is(fate, ErrNotWritten) && j >= 0:
				fail("message %.20q is there, but %v", text, fate)
			}
			if j >= 0 {
				at += j + 1
			}
		}
	}
	// What we have read.
	if len(x.read) > len(x.messages) || !slices.Equal(x.read, x.messages[:len(x.read)]) {
		fail("read %d messages of %d, not a prefix", len(x.read), len(x.messages))
	}
	var peers *CloseError
	var rule *ProtocolError
	switch {
	case errors.As(x.end, &peers):
		x.tally["goodbye"]++
		if !x.goodbye && !(x.our == "close") || len(x.read) != len(x.messages) {
			fail("a close frame, and %d of %d messages", len(x.read), len(x.messages))
		}
		if window == "open" && !x.hungUp && closes != 1 && !x.mayLose() {
			fail("the close frame of the peer was answered %d times", closes)
		}
		if window == "open" && !x.hungUp && before != nil && errors.As(before, &peers) && torn != "" && !x.mayLose() {
			fail("torn %s", torn)
		}
	case errors.As(x.end, &rule):
		x.tally["broken"]++
		if !x.broken || len(x.read) != len(x.messages) {
			fail("%v, and %d of %d messages", rule, len(x.read), len(x.messages))
		}
		if window == "open" && !x.hungUp && closes != 1 && !x.mayLose() {
			fail("a broken rule was answered by %d close frames", closes)
		}
	case errors.Is(x.end, net.ErrClosed):
		x.tally["we ended"]++
	default:
		x.tally[fmt.Sprintf("%.40v", innermost(x.end))]++
	}
	if x.hungUp && errors.Is(before, io.EOF) && len(x.read) != len(x.messages) {
		fail("EOF, and %d of %d messages", len(x.read), len(x.messages))
	}
	if closed == nil && x.our == "close" {
		x.tally["closed well"]++
		if closes != 1 && window == "open" && !x.mayLose() {
			fail("Close succeeded with %d close frames", closes)
		}
	}
	// Nothing had failed, and all was in the kernel: then the last ping that was read is answered.
	if settled {
		x.tally["quiet"]++
		if len(x.read) == len(x.messages) && len(x.pings) > 0 && !x.hungUp && !x.goodbye && !x.broken {
			x.tally["last ping judged"]++
			if len(pongs) == 0 || pongs[len(pongs)-1] != x.pings[len(x.pings)-1] {
				fail("the last ping has no answer: %d pongs, %d pings, %.12q of %.12q",
					len(pongs), len(x.pings), pongs[max(0, len(pongs)-4):], x.pings[max(0, len(x.pings)-6):])
			}
		}
	}
	if x.pinged > 0 {
		x.tally["answered pings"] += x.pinged
		if len(x.pongs) == 0 {
			fail("Ping succeeded without an answer")
		}
	}
}
