package main

import (
	"context"
	"fmt"
	"math"
	"time"
)

// exam is one measurement of one peer, or of all side by side: what it starts ends with it.
type exam struct {
	ctx    context.Context
	name   string // of the peer; of the first, side by side
	peer   *peer
	sizes  sizes
	client func() (worker, error) // starts one
	server func() (*process, error)
	pairs  int // of processes, at most, that hold idle connections

	note    string // what else there is to say of the peer
	started []worker
}

// patience is how long a client may take for a measurement that takes a second or two.
const patience = 2 * time.Minute

// serve starts a server.
func (x *exam) serve(setup siteSetup) (*process, answer, error) {
	p, err := x.server()
	if err != nil {
		return nil, answer{}, err
	}
	x.started = append(x.started, p)
	if setup.Host == "" {
		setup.Host = "127.0.0.1"
	}
	a, err := p.do(x.ctx, order{Do: "site", Site: setup})
	if err != nil {
		return nil, a, fmt.Errorf("start server: %w", err)
	}
	return p, a, nil
}

// join starts a client.
func (x *exam) join() (worker, error) {
	w, err := x.client()
	if err == nil {
		x.started = append(x.started, w)
	}
	return w, err
}

// end ends what was started, the clients first.
func (x *exam) end() {
	for i := len(x.started) - 1; i >= 0; i-- {
		x.started[i].end()
	}
}

// pair starts a server for the peer, and a client.
func (x *exam) pair(setup siteSetup) (*process, worker, job, error) {
	setup.Protocols = []protocol{x.peer.protocol}
	server, at, err := x.serve(setup)
	if err != nil {
		return nil, nil, job{}, err
	}
	client, err := x.join()
	return server, client, job{Peers: []string{x.name}, Addresses: at.Addresses, Cert: at.Cert, Limit: patience}, err
}

// messages measures CPU time and allocations per message.
func (x *exam) messages(do string, size, count int) ([]float64, error) {
	a, err := x.exchange(do, size, count, burst)
	if err != nil {
		return nil, err
	}
	n := float64(a.Count)
	return []float64{float64(a.CPU) / n, float64(a.Allocs) / n, a.CPU.Seconds() / a.Took.Seconds()}, nil
}

// alone measures echoes of which one is under way.
func (x *exam) alone(count int) ([]float64, error) {
	a, err := x.exchange("echo", 128, count, 1)
	if err != nil {
		return nil, err
	}
	n := float64(a.Count)
	return []float64{float64(a.CPU) / n, inMicros(a.Fastest), float64(a.Allocs) / n}, nil
}

// latency measures how long messages take that come one by one.
func (x *exam) latency(do string, count int, every time.Duration) ([]float64, error) {
	_, client, j, err := x.pair(siteSetup{Deep: true})
	if err != nil {
		return nil, err
	}
	j.Count, j.Every = count, every
	a, err := client.do(x.ctx, order{Do: do, Job: j})
	if err != nil {
		return nil, err
	}
	return []float64{inMicros(a.Late[0]), inMicros(a.Late[1])}, nil
}

func inMicros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// exchange is a measurement of a client whose server answers it.
func (x *exam) exchange(do string, size, count, window int) (answer, error) {
	_, client, j, err := x.pair(siteSetup{Deep: true})
	if err != nil {
		return answer{}, err
	}
	j.Size, j.Count, j.Window = size, count, window
	return client.do(x.ctx, order{Do: do, Job: j})
}

// redials measures the CPU time of both ends per connection. The waits before the dials, in
// which nothing is done, are short.
func (x *exam) redials(count int) ([]float64, error) {
	server, client, j, err := x.pair(siteSetup{TLS: true, Resets: true})
	if err != nil {
		return nil, err
	}
	j.Count, j.Wait = count, time.Millisecond
	before, err := server.do(x.ctx, order{Do: "usage"})
	if err != nil {
		return nil, err
	}
	a, err := client.do(x.ctx, order{Do: "redial", Job: j})
	if err != nil {
		return nil, err
	}
	after, err := server.do(x.ctx, order{Do: "usage"})
	if err != nil {
		return nil, err
	}
	n := count + 2 // the server had two more, of which the first cannot resume anything
	return []float64{micros(a.CPU, count), micros(after.CPU-before.CPU, n), float64(after.Resumed) / float64(n-1)}, nil
}

func micros(d time.Duration, count int) float64 {
	return d.Seconds() * 1e6 / float64(count)
}

// held is what some connections hold and cost together: bytes, bytes of stack, resident bytes, and the µs to
// open them and to give each a message.
type held [5]float64

// idling says how the connections of an idle row are opened.
type idling struct{ shared, takeover bool }

// idle measures so many connections. Its figures are those of one.
func (x *exam) idle(count int, how idling) ([]float64, error) {
	sum, open, err := x.fill(count, how, func(err error) bool { return false })
	if err != nil {
		return nil, err
	}
	for i := range sum {
		sum[i] /= float64(open)
	}
	return sum[:], nil
}

// most opens connections until no more can be opened. Without a look at the memory it would end when the
// machine does.
func (x *exam) most() ([]float64, error) {
	if _, err := freeMemory(); err != nil {
		return nil, err
	}
	sum, open, err := x.fill(x.pairs*x.sizes.inOne, idling{}, func(err error) bool {
		x.note = "of this: " + err.Error()
		return x.ctx.Err() == nil
	})
	n := float64(open)
	return []float64{n, sum[0] / n, sum[4] / n}, err
}

// fill opens so many connections, in as many pairs of processes as they need; fewer if no more than a
// tenth of the memory of the machine would stay free, or if a pair after the first fails with an error
// that is enough.
func (x *exam) fill(count int, how idling, enough func(error) bool) (sum held, open int, err error) {
	var room room
	for i := 0; open < count; i++ {
		if free, err := freeMemory(); err == nil && !room.forOneMore(free) && i > 0 {
			x.full(open, "a tenth of the memory has to stay free")
			break
		}
		n := min(count-open, x.sizes.inOne)
		a, err := x.hold(i, n, how)
		if err != nil && i > 0 && enough(err) {
			x.full(open, x.note)
			break
		}
		if err != nil {
			return sum, open, err
		}
		pair := held{
			float64(a.Bytes), float64(a.Stack), float64(a.Resident), a.CPU.Seconds() * 1e6, a.Wake.Seconds() * 1e6,
		}
		for i, v := range pair {
			sum[i] += v
		}
		open += n
	}
	return sum, open, nil
}

// full notes why there are not more connections.
func (x *exam) full(open int, reason string) {
	x.note = fmt.Sprintf("no more than %d connections, because %s", open, reason)
}

// room is the part of the machine's memory that is free, and the most that a pair of processes
// has taken of it.
type room struct{ free, taken float64 }

// forOneMore reports whether a tenth will be free when one more pair has taken as much as the
// others have.
func (r *room) forOneMore(free float64) bool {
	r.taken = max(r.taken, r.free-free)
	r.free = free
	return free-r.taken >= 0.1
}

// hold opens n connections in a pair of processes, the i-th, which has an address of its
// own, since each address has only so many ports. They stay open until the exam ends.
func (x *exam) hold(i, n int, how idling) (answer, error) {
	_, client, j, err := x.pair(siteSetup{Host: fmt.Sprintf("127.0.0.%d", 1+i%250), Takeover: how.takeover})
	if err != nil {
		return answer{}, err
	}
	j.Count, j.Shared, j.Takeover, j.Settle, j.Down = n, how.shared, how.takeover, x.sizes.settle, feedTopic
	return client.do(x.ctx, order{Do: "idle", Job: j})
}

// never is what a figure is if it was waited for in vain.
var never = math.Inf(1)
