// Puts the floating-point unit of a thread into the one state that results are promised for, and back at the end.
#pragma once
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace hybrid {

// Round to nearest even, subnormals kept, exceptions masked: what a caller's library may have changed (FTZ, DAZ) must not change a bit.
class FloatControl {
   public:
#if defined(__x86_64__)
    FloatControl() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80u); }
    ~FloatControl() { _mm_setcsr(saved_); }

   private:
    unsigned saved_;
#elif defined(__aarch64__)
    FloatControl() {
        __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
        __asm__ volatile("msr fpcr, %0" : : "r"(0ul));
    }
    ~FloatControl() { __asm__ volatile("msr fpcr, %0" : : "r"(saved_)); }

   private:
    unsigned long saved_;
#else
    FloatControl() {}
    ~FloatControl() {}

   private:
#endif
    FloatControl(const FloatControl&) = delete;
    FloatControl& operator=(const FloatControl&) = delete;
};

}  // namespace hybrid
