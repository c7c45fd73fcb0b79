import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

plt.rcParams["font.family"] = ["Noto Sans CJK JP", "DejaVu Sans"]

days = ["Mon 月", "Tue 火", "Wed 水", "Thu 木", "Fri 金", "Sat 土", "Sun 日"]
visitors = [250, 280, 350, 330, 480, 610, 500]
total = sum(visitors)
mean = total / len(visitors)
best = visitors.index(max(visitors))

figure, axes = plt.subplots(figsize=(8.4, 4.8), dpi=100)
colours = ["#e07b39" if i == best else "#4f83b5" for i in range(len(days))]
bars = axes.bar(days, visitors, color=colours, width=0.64, zorder=2)
axes.bar_label(bars, fmt="%d", padding=3, fontsize=10)
axes.axhline(mean, color="#333333", linestyle="--", linewidth=1.3, zorder=3, label=f"Mean {mean:.0f} per day")
axes.set_ylim(0, 760)
axes.set_ylabel("Visitors")
axes.set_title(f"Museum visitors, week 47 (total {total:,})", fontsize=13, pad=12)
axes.legend(loc="upper left", frameon=False)
axes.grid(axis="y", color="#dddddd", zorder=0)
axes.spines[["top", "right"]].set_visible(False)
axes.text(0.995, 0.955, f"Busiest day: {days[best]}", transform=axes.transAxes, ha="right", fontsize=10, color="#b3541e")
figure.tight_layout()
figure.savefig("output.png")
