package fleet

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

type cand struct {
	name string
	p    backoff.Policy
}

func seedsFor(n int) int {
	switch {
	case n == 1:
		return 300
	case n <= 10:
		return 60
	case n <= 100:
		return 20
	case n <= 1000:
		return 6
	case n <= 10000:
		return 3
	}
	return 1
}

type sum struct {
	t50, t99, t100, peak, again, dials, wasted, up float64
	never                                          int
	med                                            float64
}

func mean(h Herd, k int) sum {
	var s sum
	out := make([]*Result, k)
	var wg sync.WaitGroup
	sem := make(chan bool, 2)
	for i := range k {
		wg.Add(1)
		sem <- true
		go func() {
			defer wg.Done()
			defer func() { <-sem }()
			g := h
			g.Seed = uint64(i) + 1
			r, err := Run(context.Background(), g)
			if err != nil {
				panic(err)
			}
			out[i] = r
		}()
	}
	wg.Wait()
	var l []float64
	for _, r := range out {
		if !r.Recovered() || r.T99 < 0 {
			s.never++
		}
		s.t50 += r.T50.Seconds() / float64(k)
		s.t99 += r.T99.Seconds() / float64(k)
		s.t100 += r.T100.Seconds() / float64(k)
		s.peak += float64(r.Peak) / float64(k)
		s.again += float64(r.PeakAgain) / float64(k)
		s.dials += r.Dials / float64(k)
		s.wasted += r.Wasted / float64(k)
		l = append(l, r.T100.Seconds())
	}
	sort.Float64s(l)
	s.med = l[k/2]
	return s
}

type paced struct {
	quick  int
	spread time.Duration
	base   time.Duration
	share  float64
	cap    time.Duration
	oshare float64
	ocap   time.Duration
}

func (p *paced) Next(a backoff.Attempt, r *rand.Rand) (backoff.Step, bool) {
	if a.N == 0 {
		return backoff.Step{Wait: backoff.Uniform(r, 0, p.spread)}, true
	}
	sec := time.Second
	if a.Elapsed < sec && a.Verdict.Class != backoff.ClassOverload {
		if p.quick == 1 {
			return backoff.Step{Wait: backoff.Uniform(r, sec/2, sec)}, true
		}
		return backoff.Step{Wait: backoff.Uniform(r, sec-a.Elapsed, 2*sec-a.Elapsed)}, true
	}
	share, c := p.share, p.cap
	if a.Verdict.Class == backoff.ClassOverload {
		share, c = p.oshare, p.ocap
	}
	hi := max(p.base, min(c, time.Duration(share*float64(a.Elapsed))))
	return backoff.Step{Wait: backoff.Uniform(r, hi/2, hi)}, true
}

type stairs struct {
	w    [][2]time.Duration
	f    float64
	cap  time.Duration
	over [][2]time.Duration
	of   float64
	ocap time.Duration
}

func (s *stairs) Next(a backoff.Attempt, r *rand.Rand) (backoff.Step, bool) {
	w, f, c, n := s.w, s.f, s.cap, a.N
	if s.over != nil && a.Verdict.Class == backoff.ClassOverload && a.N > 0 {
		w, f, c, n = s.over, s.of, s.ocap, a.N-1
	}
	k := min(n, len(w)-1)
	lo, hi := w[k][0], w[k][1]
	if n > k {
		m := math.Pow(f, float64(n-k))
		share := float64(lo) / float64(hi)
		hi = time.Duration(min(float64(hi)*m, float64(c)))
		lo = time.Duration(float64(hi) * share)
	}
	return backoff.Step{Wait: backoff.Uniform(r, lo, hi)}, true
}

func TestExplore(t *testing.T) {
	sec := time.Second
	ms := time.Millisecond
	pat := func(p backoff.Policy) backoff.Policy {
		return backoff.Patient(p, backoff.Patience{Base: 10 * sec, Factor: 2, Cap: 60 * sec}, backoff.Patience{Base: 30 * sec, Factor: 4, Cap: -1})
	}
	_ = ms
	mk := func(spread, base time.Duration, f float64, cap, ocap time.Duration, j backoff.Jitter, s float64) cand {
		return cand{fmt.Sprintf("U%v %v x%v <%v/%v j%d %v", spread, base, f, cap, ocap, j, s),
			pat(backoff.First(spread, &backoff.Exponential{Base: base, Factor: f, Cap: cap, OverloadCap: ocap, Jitter: j, Spread: s}))}
	}
	_ = mk
	R := func(x ...float64) (w [][2]time.Duration) {
		for i := 0; i < len(x); i += 2 {
			w = append(w, [2]time.Duration{time.Duration(x[i] * 1e9), time.Duration(x[i+1] * 1e9)})
		}
		return
	}
	st := func(name string, f float64, cap time.Duration, over [][2]time.Duration, of float64, ocap time.Duration, w [][2]time.Duration) cand {
		return cand{name, pat(&stairs{w, f, cap, over, of, ocap})}
	}
	pc := func(name string, q int, base, share float64, cap time.Duration, oshare float64, ocap time.Duration, hf float64) cand {
		return cand{name, backoff.Patient(&paced{q, 2 * sec, time.Duration(base * 1e9), share, cap, oshare, ocap}, backoff.Patience{Base: 10 * sec, Factor: 2, Cap: 60 * sec}, backoff.Patience{Base: 30 * sec, Factor: hf, Cap: -1})}
	}
	_, _ = st, R
	var cs []cand
	cs = append(cs, cand{"proposed", Proposed()}, cand{"cap30", Enduring(&Paced{OverloadCap: 30 * sec}, Lasting{Share: 0.25, Cap: time.Minute}, Lasting{Share: 8})})
	_ = pc
	if os.Getenv("BIG") != "" {
		cs = append(cs, cand{"default", backoff.Default()}, cand{"ocap 300, k 16", Enduring(&Paced{OverloadCap: 300 * sec}, Lasting{Share: 0.25, Cap: time.Minute}, Lasting{Share: 16})})
	}
	ns := []int{1, 10, 100, 1000, 10000, 100000}
	if os.Getenv("NS") != "" {
		ns = nil
		for _, f := range strings.Split(os.Getenv("NS"), ",") {
			var n int
			fmt.Sscan(f, &n)
			ns = append(ns, n)
		}
	}
	for _, c := range cs {
		explore(c, ns)
	}
}

func explore(c cand, ns []int) {
	sec := time.Second
	fmt.Printf("== %s\n", c.name)
	blip := mean(Herd{N: 1, Client: Client{Policy: c.p}, Outage: Outage{Length: sec}, Server: Server{Capacity: 500}}, 2000)
	fmt.Printf("   lone blip: median back %.2f s after loss\n", 1+blip.med)
	tw := mean(Herd{N: 1000, Client: Client{Policy: c.p}, Outage: Outage{Again: 4 * sec}, Server: Server{Capacity: 5000}}, 10)
	fmt.Printf("   dies twice: peak %.1f%% again %.1f%%\n", tw.peak/10, tw.again/10)
	for _, T := range []time.Duration{0, 5 * sec} {
		for _, q := range []struct {
			q Queue
			b int
		}{{Reject, 50}, {Reject, 4096}, {Drop, 4096}, {Busy, 50}, {Unbounded, 0}} {
			fmt.Printf("   T%-2v %-9v %-4d", T.Seconds(), q.q, q.b)
			for _, n := range ns {
				I := float64(n) / 500
				h := Herd{N: n, Client: Client{Policy: c.p}, Outage: Outage{Length: T}, Server: Server{Capacity: 500, Queue: q.q, Backlog: q.b}, Watch: 10*time.Minute + time.Duration(8*I)*sec}
				s := mean(h, seedsFor(n))
				mark := " "
				if s.t99 > 1.25*I+2 {
					mark = "!"
				}
				if s.never > 0 {
					mark = "N"
				}
				fmt.Printf(" | %5.2f/%-5.2f%s d%.1f", s.t99, 1.25*I+2, mark, s.dials)
				if n >= 1000 {
					fmt.Printf(" p%.1f%%", 100*s.peak/float64(n))
				}
			}
			fmt.Println()
		}
	}
}
