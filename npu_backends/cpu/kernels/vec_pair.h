// Sixteen floats as two times eight, for instruction sets without registers of that width. Sums over lanes first add the halves.
#pragma once
#include <cstdint>

namespace hybrid {

template <class F8>
struct Pair {
    static constexpr int kAccumulators = 6;  // of sixteen lanes that the registers hold beside what a loop needs

    F8 left, right;

    static Pair all(float x) { return {F8::all(x), F8::all(x)}; }
    static Pair load(const float* p) { return {F8::load(p), F8::load(p + 8)}; }
    static Pair load_half(const uint16_t* p) { return {F8::load_half(p), F8::load_half(p + 8)}; }
    void store(float* p) const {
        left.store(p);
        right.store(p + 8);
    }
    float first() const { return left.first(); }

    static Pair multiply_add(Pair a, Pair b, Pair c) {
        return {F8::multiply_add(a.left, b.left, c.left), F8::multiply_add(a.right, b.right, c.right)};
    }
    static Pair maximum(Pair a, Pair b) { return {F8::maximum(a.left, b.left), F8::maximum(a.right, b.right)}; }
    static Pair minimum(Pair a, Pair b) { return {F8::minimum(a.left, b.left), F8::minimum(a.right, b.right)}; }
    static Pair zero_below(Pair x, float limit, Pair value) {
        return {F8::zero_below(x.left, limit, value.left), F8::zero_below(x.right, limit, value.right)};
    }
    // a in the lanes from <= i < to, `other` elsewhere
    static Pair keep(Pair a, int from, int to, float other) {
        return {F8::keep(a.left, from, to, other), F8::keep(a.right, from - 8, to - 8, other)};
    }
    static Pair round(Pair x) { return {F8::round(x.left), F8::round(x.right)}; }
    static Pair power_of_two(Pair n) { return {F8::power_of_two(n.left), F8::power_of_two(n.right)}; }
    float sum() const { return (left + right).sum(); }
    float largest() const { return F8::maximum(left, right).largest(); }
};

template <class F8>
inline Pair<F8> operator+(Pair<F8> a, Pair<F8> b) {
    return {a.left + b.left, a.right + b.right};
}
template <class F8>
inline Pair<F8> operator-(Pair<F8> a, Pair<F8> b) {
    return {a.left - b.left, a.right - b.right};
}
template <class F8>
inline Pair<F8> operator*(Pair<F8> a, Pair<F8> b) {
    return {a.left * b.left, a.right * b.right};
}
template <class F8>
inline Pair<F8> operator/(Pair<F8> a, Pair<F8> b) {
    return {a.left / b.left, a.right / b.right};
}

}  // namespace hybrid
