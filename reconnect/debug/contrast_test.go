package debug

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	cssComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	cssRule    = regexp.MustCompile(`([^{}]+)\{([^{}]*)\}`)
	cssColor   = regexp.MustCompile(`(--[a-z-]+): (#[0-9a-f]{3,6});`)
	cssText    = regexp.MustCompile(`(?:^|[;\s])color: ([^;]+)`)
	cssBack    = regexp.MustCompile(`(?:^|[;\s])background: ([^;]+)`)
	cssFade    = regexp.MustCompile(`(?:^|[;\s])(?:opacity|filter): (?:[^1;]|1[^;])`)
	cssVar     = regexp.MustCompile(`^var\((--[a-z-]+)\)$`)
)

// Each text of the page has a contrast of 4.5 at least (WCAG 2.2, 1.4.3), in the light and in the dark. A rule that
// sets no background has that of the page or that of a card. The cells of sessions have 3 at least (1.4.11).
func TestTheContrastIsHigh(t *testing.T) {
	css := cssComment.ReplaceAllString(pageCSS, "")
	schemes := rootColors(css)
	require.Len(t, schemes, 2, "light and dark")
	texts, cells := 0, 0
	for _, rule := range cssRule.FindAllStringSubmatch(css, -1) {
		selector, body := strings.TrimSpace(rule[1]), rule[2]
		require.False(t, cssFade.MatchString(body), "%s: a text that is faded has another contrast", selector)
		for name, colors := range schemes {
			if m := cssBack.FindStringSubmatch(body); m != nil && strings.HasPrefix(selector, ".cells") {
				cells++
				color := colors[variable(t, m[1], selector)]
				require.GreaterOrEqual(t, contrast(t, color, colors["--card"]), 3.0, "%s, %s", name, selector)
			}
			m := cssText.FindStringSubmatch(body)
			if m == nil || m[1] == "inherit" {
				continue
			}
			texts++
			text := variable(t, m[1], selector)
			backs := []string{"--bg", "--card"}
			if m := cssBack.FindStringSubmatch(body); m != nil {
				backs = []string{variable(t, m[1], selector)}
			}
			for _, back := range backs {
				require.GreaterOrEqual(t, contrast(t, colors[text], colors[back]), 4.5, "%s, %s: %s on %s", name, selector, text, back)
			}
		}
	}
	require.Greater(t, texts, 40)
	require.Equal(t, 10, cells)
}

// rootColors returns the colors of each block :root, by the name of the variable.
func rootColors(css string) map[string]map[string]string {
	schemes := map[string]map[string]string{}
	for i, block := range regexp.MustCompile(`:root \{([^{}]*)\}`).FindAllStringSubmatch(css, -1) {
		colors := map[string]string{}
		for _, m := range cssColor.FindAllStringSubmatch(block[1], -1) {
			colors[m[1]] = m[2]
		}
		schemes[[]string{"light", "dark", "a third one"}[i]] = colors
	}
	return schemes
}

// variable returns the name of the variable that a color is.
func variable(t *testing.T, color, selector string) string {
	m := cssVar.FindStringSubmatch(color)
	require.NotNil(t, m, "%s: %s is no variable, so that it is the same in the dark", selector, color)
	return m[1]
}

// contrast returns the contrast of two colors, by the formula of WCAG 2.2.
func contrast(t *testing.T, a, b string) float64 {
	x, y := luminance(t, a), luminance(t, b)
	return (math.Max(x, y) + 0.05) / (math.Min(x, y) + 0.05)
}

func luminance(t *testing.T, color string) float64 {
	digits := strings.TrimPrefix(color, "#")
	if len(digits) == 3 {
		digits = fmt.Sprintf("%c%c%c%c%c%c", digits[0], digits[0], digits[1], digits[1], digits[2], digits[2])
	}
	require.Len(t, digits, 6, "%q is no color", color)
	var l float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(digits[2*i:2*i+2], 16, 8)
		require.NoError(t, err)
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		l += weight * c
	}
	return l
}

func TestContrastIsThatOfWCAG(t *testing.T) {
	require.InDelta(t, 21, contrast(t, "#000", "#ffffff"), 1e-9)
	require.InDelta(t, 4.54, contrast(t, "#767676", "#fff"), 0.01, "the lightest grey that is enough on white")
}
