package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/redial-go/redial/bench/internal/chart"
)

// decimal is x with so many digits after the point, and a dash if it is not defined.
func decimal(x float64, digits int) string {
	if math.IsNaN(x) {
		return "-"
	}
	if digits == 0 {
		return chart.Number(math.Round(x))
	}
	return fmt.Sprintf("%.*f", digits, x)
}

// fileName is a name with nothing in it that a file's should not have.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '%':
			return -1
		}
		return '_'
	}, name)
}
