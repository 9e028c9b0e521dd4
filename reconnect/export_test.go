package reconnect

import "time"

// SetWallClock has a Conn with these options see now as the wall clock, as if the machine had
// been suspended. Several goroutines may call now at once.
func SetWallClock(o *Options, now func() time.Time) { o.Liveness.now = now }
