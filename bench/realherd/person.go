package realherd

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/redial-go/redial/bench/retrystorm"
	"github.com/redial-go/redial/reconnect/backoff"
)

// person is one client of a storm. It belongs to the goroutine of live.
type person struct {
	storm  *Storm
	url    string
	counts *stormCounts
	http   *http.Client
	policy backoff.Policy
	rand   *rand.Rand
}

// newPeople returns the clients, which dial from as many addresses as there are.
func newPeople(s *Storm, url string, counts *stormCounts) ([]person, error) {
	var clients [sources]*http.Client
	for i := range clients {
		var d net.Dialer
		if from := source(i); from.IsValid() {
			d.LocalAddr = &net.TCPAddr{IP: from.AsSlice()}
		}
		clients[i] = &http.Client{Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}}
	}
	people := make([]person, s.Clients)
	for i := range people {
		policy, err := s.Client.Policy()
		if err != nil {
			return nil, err
		}
		people[i] = person{storm: s, url: url, counts: counts, http: clients[i%sources], policy: policy, rand: backoff.Rand()}
	}
	return people, nil
}

// live thinks and asks until ctx ends.
func (p *person) live(ctx context.Context) {
	for pause(ctx, p.think()) == nil && p.succeed(ctx) {
	}
}

// think returns how long the client thinks.
func (p *person) think() time.Duration {
	d := time.Duration(p.rand.ExpFloat64() * float64(p.storm.Think))
	if coded, ok := p.policy.(*retrystorm.AsCoded); ok {
		coded.Think(d)
	}
	return d
}

// succeed asks until it is answered; when the policy gives up, the client thinks before it
// asks again. It returns false if ctx has ended.
func (p *person) succeed(ctx context.Context) bool {
	var outage backoff.Outage
	for failed := false; ; failed = true {
		err := p.ask(ctx)
		switch {
		case err == nil:
			p.counts.ok.Add(1)
			if failed {
				p.counts.away.Add(-1)
			}
			return true
		case ctx.Err() != nil:
			return false
		}
		if !failed {
			p.counts.away.Add(1)
		}
		v := backoff.Classify(err)
		if v.Class == backoff.ClassOverload {
			p.counts.timedOut.Add(1)
		} else {
			p.counts.failed.Add(1)
		}
		step, again := outage.Next(p.policy, v, time.Now(), p.rand)
		wait := step.Wait
		if !again {
			outage, wait = backoff.Outage{}, p.think()
		}
		if pause(ctx, wait) != nil {
			return false
		}
	}
}

// ask makes one request.
func (p *person) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.storm.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	answer, err := p.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}
