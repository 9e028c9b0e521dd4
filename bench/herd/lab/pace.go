package lab

import "time"

// pace admits so many connections per second, evenly. If the machine was busy, late
// connections may make up for as much as paceSlack. After an idle time connections are
// admitted no faster, but for that slack.
type pace struct {
	interval time.Duration // 0: no limit
	due      time.Time     // by when all that was admitted would be done
}

const paceSlack = 20 * time.Millisecond

func newPace(perSecond float64) pace {
	if perSecond <= 0 {
		return pace{}
	}
	return pace{interval: time.Duration(float64(time.Second) / perSecond)}
}

// wait is how long it takes until the next one is admitted; 0: now.
func (p *pace) wait(now time.Time) time.Duration {
	return max(paceSlack, p.due.Sub(now)) - paceSlack // in this order: the zero time is too far away to be subtracted from
}

// admit counts one.
func (p *pace) admit(now time.Time) {
	if p.due.Before(now) {
		p.due = now
	}
	p.due = p.due.Add(p.interval)
}
