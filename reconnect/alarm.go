package reconnect

import "time"

// setAlarm sees to it that the timer rings when e expires.
func (q *outbox) setAlarm(e *entry) {
	if e.expires.IsZero() || !q.alarm.IsZero() && !e.expires.Before(q.alarm) {
		return
	}
	wait := time.Until(e.expires)
	switch {
	case q.timer == nil:
		q.ringing.Add(1)
		q.timer = time.AfterFunc(wait, q.ring)
	case q.alarm.IsZero() || q.timer.Stop():
		if q.alarm.IsZero() {
			q.ringing.Add(1)
		}
		q.timer.Reset(wait)
	default:
		return // it is ringing, and will look
	}
	q.alarm = e.expires
}

// ring is the timer's callback: it drops what has expired.
func (q *outbox) ring() {
	defer q.ringing.Done()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.alarm = time.Time{}
	if q.closed {
		return
	}
	now := time.Now()
	var earliest *entry
	for e, next := q.waiting.first, (*entry)(nil); e != nil; e = next {
		next = e.next
		switch {
		case e.late(now):
			q.drop(e, ErrExpired)
		case !e.expires.IsZero() && (earliest == nil || e.expires.Before(earliest.expires)):
			earliest = e
		}
	}
	if earliest != nil {
		q.setAlarm(earliest)
	}
}
