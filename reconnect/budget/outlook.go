package budget

import "time"

// Outlook describes the next probe that dials wait for at a [Gate] whose host is down.
type Outlook struct {
	Err     error     // of the last dial that counts against the host; nil if that came by Acquire
	Next    time.Time // when the next probe may begin, unless a dial joins or leaves; zero while one is in progress
	By      string    // name of the connection that probes, now or next; "": unnamed, or no dial waits
	Waiting int       // waiting dials
}

// Outlook returns the outlook of a host that is down, or nil if it is up or unknown.
func (g *Gate) Outlook(host string) *Outlook {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.lines[host]
	if d == nil {
		return nil
	}
	s := d.line.Status(time.Now())
	if !s.Down {
		return nil
	}
	o := &Outlook{Err: d.err, Next: s.Probe, Waiting: s.Waiting}
	if d.probe != nil {
		o.Next, o.By = time.Time{}, d.probe.name
	} else if first := d.line.First(); first != nil {
		o.By = first.Value.(*dial).name
	}
	return o
}
