package queueing

import "math/rand/v2"

// hosts are the hosts of the server, as callers see them. After so many errors in a row a host is
// ejected for 100 ms, the second time for 200 ms, and so on, as Envoy's outlier detection does it
// (consecutive_5xx; there the base is 30 s, as a breaker's is seconds). No more than one is ejected at
// a time: max_ejection_percent is 10, which always allows one.
//
// If each host has the data of its own users, a call to an ejected host fails at once. If all hosts are
// alike, the call goes to another host.
type hosts struct {
	all    []host
	errors int // in a row, after which a host is ejected; 0: never
}

// host is one of the hosts.
type host struct {
	row   int   // errors since the last success
	times int   // that it was ejected
	until int64 // ns; ejected until then
}

const ejectFor = 100 * ms

func newHosts(many, errors int) hosts { return hosts{make([]host, max(1, many)), errors} }

// note notes how a request to a host has ended.
func (h *hosts) note(n uint8, ok bool, now int64) {
	one := &h.all[n]
	if ok {
		one.row = 0
		return
	}
	if one.row++; one.row < h.errors || h.any(now) {
		return
	}
	one.times++
	one.row, one.until = 0, now+int64(one.times)*int64(ejectFor)
}

// any reports whether one is ejected.
func (h *hosts) any(now int64) bool {
	for i := range h.all {
		if h.all[i].until > now {
			return true
		}
	}
	return false
}

// pick draws one that is not ejected.
func (h *hosts) pick(now int64, r *rand.Rand) uint8 {
	for {
		if n := r.IntN(len(h.all)); h.all[n].until <= now {
			return uint8(n)
		}
	}
}

// ejected reports whether the host that a call must go to is ejected.
func (r *run) ejected(id uint32) bool {
	return r.strategy.Eject > 0 && r.scenario.Failure.ByUser && r.hosts.all[r.calls[id].host].until > r.now
}
