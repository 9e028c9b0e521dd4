package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"time"
)

// job is what a client does.
type job struct {
	Peers     []string // one, but for "watch"
	Addresses map[protocol]string
	Cert      []byte
	Size      int           // of a message
	Count     int           // of messages, of bursts, of redials, of connections
	Shared    bool          // what clients can share is shared
	Takeover  bool          // messages are compressed with context takeover
	Window    int           // of echoes under way
	Every     time.Duration // between two messages of "latency"
	Down      string        // the topic to listen to; default: one of the client's own
	Wait      time.Duration // between two dials; 0: as each library has it
	Settle    time.Duration // before memory is measured: what was opened or closed ends
	Limit     time.Duration // for all of it
}

// peer is the only one of the job, with a target for it. Client i has topics of its own.
func (j *job) peer(name string, i int) (*peer, *target, error) {
	p, err := findPeer(name)
	if err != nil {
		return nil, nil, err
	}
	own := fmt.Sprintf("%s-%d", p.name, i)
	t := &target{address: j.Addresses[p.protocol], up: "up." + own, down: "down." + own}
	if p.protocol == mqtt5 {
		t.up, t.down = "up/"+own, "down/"+own
	}
	if j.Down != "" {
		t.down = j.Down
	}
	t.wait, t.takeover = j.Wait, j.Takeover
	if t.tls, err = clientTLS(j.Cert); t.tls != nil {
		t.http = &http.Client{Transport: &http.Transport{TLSClientConfig: t.tls}}
	}
	return p, t, err
}

// open opens the client of a job that has one, with box for its messages.
func (j *job) open(ctx context.Context, b *box) (client, error) {
	p, t, err := j.peer(j.Peers[0], 0)
	if err != nil {
		return nil, err
	}
	t.oneByOne = j.Window == 1
	t.onMessage, t.onDown = b.take, func(err error) { b.fail(fmt.Errorf("lost: %v", err)) }
	return p.open(ctx, t)
}

// meter measures what this process uses.
type meter struct {
	cpu    time.Duration
	allocs uint64
	at     time.Time
}

// newMeter collects garbage first, so that no client pays for what was before.
func newMeter() (meter, error) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	cpu, err := usage()
	return meter{cpu, m.Mallocs, time.Now()}, err
}

// since returns what was used for so many.
func (m meter) since(count int) (answer, error) {
	cpu, err := usage()
	took := time.Since(m.at)
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return answer{CPU: cpu - m.cpu, Took: took, Allocs: now.Mallocs - m.allocs, Count: count}, err
}

// warm is how many messages come before what is measured.
const warm = 200

// receive measures messages that come as fast as the client takes them.
func (j *job) receive(ctx context.Context) (answer, error) {
	b := newBox(j.Size)
	c, err := j.open(ctx, b)
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	pour := func(n int) error {
		b.expect(n)
		if err := c.Send(pourOrder(j.Size, n)); err != nil {
			return err
		}
		return b.wait(ctx)
	}
	return measured(pour, j.Count)
}

// send measures bursts of messages from one goroutine, each answered by one.
func (j *job) send(ctx context.Context) (answer, error) {
	b := newBox(1)
	b.first = askCount
	c, err := j.open(ctx, b)
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	p := payload(j.Size)
	p[0] = askCount
	bursts := func(n int) error {
		for range max(n/burst, 1) {
			b.expect(1)
			for range burst {
				if err := c.Send(p); err != nil {
					return err
				}
			}
			if err := b.wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	return measured(bursts, j.Count/burst*burst)
}

// echo measures messages that come back, with so many under way. The reader sends the next. If one is under way, it
// measures the fastest round trip, too.
func (j *job) echo(ctx context.Context) (answer, error) {
	b := newBox(j.Size)
	b.first = askEcho
	p := payload(j.Size)
	p[0] = askEcho
	var c client
	fastest, at := time.Hour, time.Now()
	left := 0                      // to be sent: the reader's, once the first is sent
	sent := make(chan struct{}, 1) // the first is
	b.each = func() error {
		next := 1
		if b.n == 1 {
			<-sent // the answer may come before Send returns
			next = j.Window
		}
		if j.Window == 1 {
			now := time.Now()
			fastest, at = min(fastest, now.Sub(at)), now
		}
		for ; next > 0 && left > 0; next-- {
			left--
			if err := c.Send(p); err != nil {
				return err
			}
		}
		return nil
	}
	c, err := j.open(ctx, b)
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	echoes := func(n int) error {
		b.expect(n)
		left = n - 1
		err := c.Send(p) // its answer lets the reader send a burst
		sent <- struct{}{}
		if err != nil {
			return err
		}
		return b.wait(ctx)
	}
	a, err := measured(echoes, j.Count)
	a.Fastest = fastest
	return a, err
}

// latency measures how long messages take that come one by one, from the server's write to the application.
func (j *job) latency(ctx context.Context) (answer, error) {
	took := make([]time.Duration, 0, j.Count)
	b := newBox(128)
	p, t, err := j.peer(j.Peers[0], 0)
	if err != nil {
		return answer{}, err
	}
	t.onDown = func(err error) { b.fail(fmt.Errorf("lost: %v", err)) }
	t.onMessage = func(p []byte) {
		at := time.Now()
		b.take(p)
		took = append(took, at.Sub(sent(p)))
		if len(took) == cap(took) {
			b.fail(nil)
		}
	}
	b.expect(j.Count + 1) // so that the box does not end before the last time is kept
	c, err := p.open(ctx, t)
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	if err := c.Send(ticksOrder(j.Count, j.Every)); err != nil {
		return answer{}, err
	}
	err = b.wait(ctx)
	return answer{Late: late(took)}, err
}

// late returns the median, and what 99 of 100 do not exceed, without the first tenth, in which everything warms up.
func late(took []time.Duration) [2]time.Duration {
	took = took[len(took)/10:]
	slices.Sort(took)
	if len(took) == 0 {
		return [2]time.Duration{}
	}
	return [2]time.Duration{took[len(took)/2], took[len(took)*99/100]}
}

// machine measures how long one goroutine takes to wake another, which waits at a pipe.
func (j *job) machine() (answer, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return answer{}, err
	}
	defer r.Close()
	go func() { // the end of the pipe ends the loop below
		defer w.Close()
		ticker := time.NewTicker(j.Every)
		defer ticker.Stop()
		for range j.Count {
			<-ticker.C
			if _, err := w.Write(stamped()); err != nil {
				return
			}
		}
	}()
	took := make([]time.Duration, 0, j.Count)
	for p := make([]byte, 128); ; {
		if _, err := io.ReadFull(r, p); err != nil {
			break
		}
		took = append(took, time.Since(sent(p)))
	}
	if len(took) < j.Count {
		return answer{}, fmt.Errorf("read a pipe: %d messages instead of %d", len(took), j.Count)
	}
	return answer{Late: late(took)}, nil
}

// measured runs f for the warm-up, and then for count messages, which it measures.
func measured(f func(n int) error, count int) (answer, error) {
	if err := f(warm); err != nil {
		return answer{}, err
	}
	m, err := newMeter()
	if err != nil {
		return answer{}, err
	}
	if err := f(count); err != nil {
		return answer{}, err
	}
	return m.since(count)
}
