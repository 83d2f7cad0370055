package template

import "testing"

func BenchmarkFold(b *testing.B) {
	for _, text := range []string{
		"GET /users/1234567/orders/550e8400-e29b-41d4-a716-446655440000",
		"GET /api/v1/products/blue-shoes/reviews",
		"SELECT id, name FROM users WHERE email = 'alice@example.com' AND deleted_at IS NULL LIMIT 17",
	} {
		b.Run(text[:12], func(b *testing.B) {
			templates, f := New(), Fold{}
			teach(templates, text)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				f.Name(templates, anyScope, text, maxText)
			}
		})
	}
}
