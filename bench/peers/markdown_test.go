package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTableOfTheREADMEHasMediansAndTheNoise(t *testing.T) {
	require.Equal(t, `|  | receive 128 B | allocations | silence noticed |
|---|---|---|---|
| coder, absolute | 150 ns |  |  |
| coder | 1.00 | 1.00 | not in time |
| coder (A/A) | 1.00 to 1.10 | 1.00 |  |
| gws | 0.25 | 0.50 |  |
| redial-push | 0.12 | 0.00 |  |
| nats |  |  | 240.0 s |

Measured 2026-01-02, a machine, load average 0.50 to 1.00, 1 to 2 rounds.
`, filled(t).Markdown())
}

func TestTableOfREADMEHasRatiosOfEachColumn(t *testing.T) {
	require.Equal(t, `|  | idle, 1,000 | resident, 1,000 |
|---|---|---|
| coder, absolute | 150 bytes | 1,500 resident bytes |
| coder | 1.00 | 1.00 |
| coder (A/A) | 1.00 to 1.10 | 1.10 to 1.30 |
| gws | 0.40 | 0.50 |

Measured 2026-01-02, a machine, load average 0.50 to 1.00, 2 rounds.
`, residents(t).Markdown())
}
