package lab

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/redial-go/redial/bench/articles/storm"
	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// stormClient is one client of a storm. It belongs to the goroutine of live.
type stormClient struct {
	storm  *storm.Options
	url    string
	counts *stormCounts
	http   *http.Client
	policy backoff.Policy
	rand   *rand.Rand
}

// stormClients are the clients of a storm.
type stormClients []stormClient

// newStormClients returns the clients of a server. On loopback they dial from as many addresses as there are.
func newStormClients(s *storm.Options, address string, counts *stormCounts) (stormClients, error) {
	var shared [sources]*http.Client
	for i := range shared {
		var d net.Dialer
		if from := source(i); from.IsValid() && isLoopback(address) {
			d.LocalAddr = &net.TCPAddr{IP: from.AsSlice()}
		}
		shared[i] = &http.Client{Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}}
	}
	clients := make(stormClients, s.Clients)
	for i := range clients {
		policy, err := s.Client.Policy()
		if err != nil {
			return nil, err
		}
		clients[i] = stormClient{storm: s, url: stormURL(address), counts: counts, http: shared[i%sources], policy: policy, rand: backoff.Rand()}
	}
	return clients, nil
}

// stormURL is what the clients of a storm ask.
func stormURL(address string) string { return "http://" + address + "/api" }

// live lets all of them live until end is called, which waits for them, or ctx ends.
func (all stormClients) live(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() { all[i].live(ctx) })
	}
	return func() { cancel(); running.Wait() }
}

// live thinks and asks until ctx ends.
func (c *stormClient) live(ctx context.Context) {
	for pause(ctx, c.think()) == nil && c.succeed(ctx) {
	}
}

// think returns how long the client thinks.
func (c *stormClient) think() time.Duration {
	d := time.Duration(c.rand.ExpFloat64() * float64(c.storm.Think))
	if coded, ok := c.policy.(*storm.AsCoded); ok {
		coded.Think(d)
	}
	return d
}

// succeed asks until it is answered; when the policy gives up, the client thinks before it
// asks again. It returns false if ctx has ended.
func (c *stormClient) succeed(ctx context.Context) bool {
	var outage schedule.Outage
	for failed := false; ; failed = true {
		err := c.ask(ctx)
		switch {
		case err == nil:
			c.counts.ok.Add(1)
			if failed {
				c.counts.away.Add(-1)
			}
			return true
		case ctx.Err() != nil:
			return false
		}
		if !failed {
			c.counts.away.Add(1)
		}
		v := backoff.Classify(err)
		if v.Class == backoff.ClassOverload {
			c.counts.timedOut.Add(1)
		} else {
			c.counts.failed.Add(1)
		}
		step, again := outage.Next(c.policy, v, time.Now(), c.rand)
		wait := step.Wait
		if !again {
			outage, wait = schedule.Outage{}, c.think()
		}
		if pause(ctx, wait) != nil {
			return false
		}
	}
}

// ask makes one request.
func (c *stormClient) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.storm.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}
