package main

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
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
	t.wait = j.Wait
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

// echo measures messages that come back, with a burst of them under way. The reader
// sends the next.
func (j *job) echo(ctx context.Context) (answer, error) {
	b := newBox(j.Size)
	b.first = askEcho
	p := payload(j.Size)
	p[0] = askEcho
	var c client
	left := 0                      // to be sent: the reader's, once the first is sent
	sent := make(chan struct{}, 1) // the first is
	b.each = func() error {
		next := 1
		if b.n == 1 {
			<-sent // the answer may come before Send returns
			next = burst
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
	return measured(echoes, j.Count)
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
