package budget

import "time"

// Outlook says what dials wait for at a [Gate] whose host is down: the next probe.
type Outlook struct {
	Err     error     // of the last dial that counts against the host; nil: that dial came by Acquire, whose done takes no error
	Next    time.Time // when the next probe may begin, if no dial joins or leaves before; zero: a probe is under way
	By      string    // the name of the connection that probes, or that probes next; empty: it has no name, or no dial waits
	Waiting int       // how many dials wait
	Gate    *Gate     // at which they wait
}

// Outlook returns what is known of a host that is down, or nil if the host is up or unknown.
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
	o := &Outlook{Err: d.err, Next: s.Probe, Waiting: s.Waiting, Gate: g}
	if d.probe != nil {
		o.Next, o.By = time.Time{}, d.probe.name
	} else if first := d.line.First(); first != nil {
		o.By = first.Value.(*dial).name
	}
	return o
}
