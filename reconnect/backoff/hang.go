package backoff

import "time"

// hang is what an [Outage] knows of a [Dials].
type hang struct {
	began   time.Time // since when handshakes hang; zero: none does
	beside  int       // dials beside the one that hangs
	refused bool      // a dial was, in this outage
	verdict bool      // the verdict is on a handshake that hangs
}

// since returns the age of the hang, 0 if there is none.
func (h *hang) since(now time.Time) time.Duration {
	if h.began.IsZero() {
		return 0
	}
	return max(now.Sub(h.began), 1)
}
