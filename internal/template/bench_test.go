package template

import (
	"strings"
	"testing"
)

func BenchmarkFold(b *testing.B) {
	for _, c := range []struct{ of, text string }{
		{"number", "GET /resource/000000001234"},
		{"url", "GET /api/v2/orders/1234567890/items/3f2a9c1b04de"},
		{"uuid", "GET /users/1234567/orders/550e8400-e29b-41d4-a716-446655440000"},
		{"words", "GET /api/v1/products/blue-shoes/reviews"},
		{"method", "OrderService.QWERTZUIOPASDF"},
		{"short", "GET /words/abcd"},
		{"sql", "SELECT id, name FROM users WHERE email = 'alice@example.com' AND deleted_at IS NULL LIMIT 17"},
		{"long", "INSERT INTO events VALUES ('1'" + strings.Repeat(", 'a value that is much like the others'), ('3f2a9c'", 60) + ")"},
	} {
		b.Run(c.of, func(b *testing.B) {
			templates, f := New(), Fold{}
			teach(templates, c.text)
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				f.Name(templates, anyScope, c.text, maxText)
			}
		})
	}
}
