package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

func TestPatienceExplore(t *testing.T) {
	sec := time.Second
	type c struct {
		name string
		p    backoff.Policy
	}
	var cs []c
	cs = append(cs, c{"default", backoff.Default()})
	for _, g := range []struct {
		b time.Duration
		f float64
	}{{10 * sec, 3}, {30 * sec, 4}} {
		cs = append(cs, c{fmt.Sprintf("sketch %v x%v", g.b, g.f), backoff.Patient(backoff.First(sec, &backoff.Exponential{OverloadCap: 300 * sec}), backoff.Patience{Base: g.b, Factor: g.f, Cap: -1}, backoff.Patience{Base: g.b, Factor: g.f, Cap: -1})})
	}
	for _, b := range []time.Duration{20 * sec, 30 * sec, 60 * sec} {
		for _, k := range []float64{2, 4, 8, 16} {
			cs = append(cs, c{fmt.Sprintf("%v k%v", b, k), Enduring(&Paced{}, Lasting{Share: .25, Cap: 60 * sec}, Lasting{Base: b, Share: k})})
		}
	}
	for _, c := range cs {
		fmt.Printf("%-18s", c.name)
		for _, n := range []int{10000, 50000, 500000} {
			for _, T := range []time.Duration{5 * sec} {
				r, err := Run(t.Context(), Herd{N: n, Client: Client{Policy: c.p}, Server: Server{Capacity: 500}, Outage: Outage{Length: T}, Watch: 10000 * sec, Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				fmt.Printf(" %d: %.2f (%.2f w)", n, r.T99.Seconds()/r.Ideal.Seconds(), r.Wasted)
			}
		}
		for _, T := range []time.Duration{10 * sec, 60 * sec, 300 * sec} {
			s, _ := Average(t.Context(), Herd{N: 1, Client: Client{Policy: c.p}, Server: Server{Capacity: 500}, Outage: Outage{Length: T, Down: Swallowed}, Watch: 10000 * sec, Seed: 1}, 500, 1)
			fmt.Printf(" | %v: %.0f", T, s.T50.Seconds())
		}
		fmt.Println()
	}
}
