package debug

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// seconds is a duration that is a number of seconds in JSON, such as 1.25.
type seconds time.Duration

func (s seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

func (s *seconds) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(string(data), 64)
	if err != nil {
		return fmt.Errorf("debug: want a number of seconds, got %q", data)
	}
	*s = seconds(f * float64(time.Second))
	return nil
}

// String returns s in a form for people: "12 ms", "4.2 s", "3 min", "2 h 5 min", "3 d 4 h".
func (s seconds) String() string {
	switch d := max(time.Duration(s), 0); {
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return "under 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// bytes returns a number of bytes in a form for people: "812 B", "1.2 kB", "16 MB".
func bytes(n uint64) string {
	x, unit := float64(n), ""
	for _, next := range []string{"k", "M", "G", "T", "P", "E"} {
		if x < 999.5 {
			break
		}
		x, unit = x/1000, next
	}
	if unit != "" && x < 9.95 {
		return fmt.Sprintf("%.1f %sB", x, unit)
	}
	return fmt.Sprintf("%.0f %sB", x, unit)
}

// number returns the whole number n with a comma before each three digits.
func number(n any) string {
	s := fmt.Sprint(n)
	var b strings.Builder
	for i, digit := range s {
		if i > 0 && (len(s)-i)%3 == 0 && s[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}
