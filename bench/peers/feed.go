package main

import "time"

// feed sends count numbered messages to all connected clients, one after each interval,
// and resets all connections so many times in between. It returns when all is sent.
func (s *site) feed(count, resets int, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	done := 0
	for n := range count {
		<-tick.C
		if err := s.broadcast(numbered(n)); err != nil {
			return err
		}
		if done < resets && n >= (2*done+1)*count/(2*resets) { // in the middle of its part
			s.reset()
			done++
		}
	}
	return nil
}

// wake sends a message to all connected clients.
func (s *site) wake() error { return s.broadcast(payload(128)) }

// broadcast sends p to all connected clients; those of a broker get it by the topic of the
// feed. A client that is lost does not get it.
func (s *site) broadcast(p []byte) error {
	for _, publish := range s.publish {
		if err := publish(p); err != nil {
			return err
		}
	}
	for _, l := range s.connected() {
		_ = l.conn.SetWriteDeadline(time.Now().Add(time.Second)) // a slow client delays no other for longer
		_ = l.write(l.wire.appendFrame(nil, p))                  // what a lost one misses is what is measured
		_ = l.conn.SetWriteDeadline(time.Time{})
	}
	return nil
}

func (s *site) connected() []*line {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := make([]*line, 0, len(s.lines))
	for l := range s.lines {
		lines = append(lines, l)
	}
	return lines
}
