package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/redial-go/redial/bench/articles/storm"
)

// ServedSecond is a second of a server that is a program of its own.
type ServedSecond struct {
	At       time.Duration // its end, from the start
	InFlight int           // requests at the server, with those that no client waits for any more
	Delay    time.Duration // with so many
	Arrived  int           // connections, of which each is a request
	Answered int           // requests
	Halted   time.Duration // for how long the process had been stopped when it went on in this second; 0: it had not
}

// ServeStorm is the server of a storm, in this process, until ctx ends; then it returns nil. An address
// without a host is one of this machine alone. It calls listening with the address and its URL once it
// listens, and each with each second.
func ServeStorm(ctx context.Context, address string, model storm.Server, listening func(address string), each func(ServedSecond)) error {
	model, err := model.WithDefaults()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("want a host and a port, such as 127.0.0.1:8070: %w", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if _, err := raiseFiles(); err != nil {
		return err
	}
	y, err := setup{Address: net.JoinHostPort(host, port), Storm: &model}.open()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- y.http.Serve(y.listener) }() // leave waits for it
	defer y.leave(ended)
	listening(y.listener.Addr().String())
	return y.watchStorm(ctx, model, ended, each)
}

// leave ends the server of a storm, with its requests.
func (y *server) leave(ended <-chan error) {
	close(y.leaving)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = y.http.Shutdown(ctx)
	_ = y.http.Close() // whatever did not leave in time
	<-ended
}

// haltedFor is how late a tick must be, at least, to come from a stop of the process.
const haltedFor = 100 * time.Millisecond

// watchStorm calls each with each second until ctx ends.
func (y *server) watchStorm(ctx context.Context, model storm.Server, ended chan error, each func(ServedSecond)) error {
	const look = 100 * time.Millisecond
	continued, end := continuations()
	defer end()
	tick := time.NewTicker(look)
	defer tick.Stop()
	began := time.Now()
	last, due, before, halted := began, began.Add(time.Second), int64(0), time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			ended <- err
			return err
		case <-tick.C:
		}
		now := time.Now()
		if late := now.Sub(last) - look; late >= haltedFor && received(continued, look) {
			halted += late
		}
		last = now
		if now.Before(due) {
			continue
		}
		due = now.Add(time.Second - look/2)
		answered, n, arrived := y.answered.Load(), int(y.inner.Load()), 0
		_, recent := y.listener.take()
		for _, bin := range recent {
			arrived += bin.Admitted
		}
		each(ServedSecond{At: now.Sub(began), InFlight: n, Delay: model.Delay(n), Arrived: arrived, Answered: int(answered - before), Halted: halted})
		before, halted = answered, 0
	}
}

// received reports whether there is a signal, or comes within a time. A process that goes on gets its tick and
// its signal in any order; one that is only busy gets no signal.
func received(signals <-chan os.Signal, within time.Duration) bool {
	select {
	case <-signals:
		return true
	case <-time.After(within):
		return false
	}
}

// ErrNoStorm is the error of a server that does not answer as that of a storm does.
var ErrNoStorm = errors.New("there is no server of a storm")

// ConnectStorm lets the clients of a storm ask a server that somebody else has started, until o.Watch is
// over (0: never) or ctx ends. It returns an error that is [ErrNoStorm] if the server does not answer a first
// request. It calls connected after that, and each with each second.
func ConnectStorm(ctx context.Context, address string, o storm.Options, connected func(), each func(StormSecond)) (*StormResult, error) {
	watch := o.Watch
	o, err := o.WithDefaults()
	if err != nil {
		return nil, err
	}
	if err := CheckFiles(fmt.Sprintf("%d clients of a storm", o.Clients), o.Clients, 2); err != nil {
		return nil, err
	}
	if err := firstAnswer(ctx, address); err != nil {
		return nil, err
	}
	connected()
	m := &stormMeter{each: each, started: time.Now()}
	clients, err := newStormClients(&o, address, &m.counts)
	if err != nil {
		return nil, err
	}
	defer clients.live(ctx)()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		cut := false
		select {
		case now := <-tick.C:
			m.second(now, StormSecond{})
		case <-ctx.Done():
			cut = true
		}
		if cut || watch > 0 && time.Since(m.started) >= watch {
			y := &StormResult{Seconds: m.seconds, Cut: cut, Away: int(m.counts.away.Load()), Recovered: isWell(m.seconds)}
			y.Unknown = len(m.seconds) < stormWell
			return y, nil
		}
	}
}

// firstAnswer asks the server once.
func firstAnswer(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Second, errors.New("no answer within 10s"))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, stormURL(address), nil)
	if err != nil {
		return fmt.Errorf("%w at %s: %w", ErrNoStorm, address, err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("%w at %s: %w", ErrNoStorm, address, err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20)); err != nil || answer.StatusCode/100 != 2 {
		return fmt.Errorf("%w at %s: it answers %s", ErrNoStorm, address, answer.Status)
	}
	return nil
}
