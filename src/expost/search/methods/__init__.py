"""The methods by name: how the privacy level is found."""

from expost.search.methods.certified import Automatic, Certified
from expost.search.methods.doubling import Doubling, DoublingPlan, doubling_search
from expost.search.methods.single_shot import Fixed, Theory
from expost.search.methods.tested import RiskTested, Stationarity
from expost.search.request import Method

#: Every method by the name the caller knows it by.
METHODS: dict[str, Method] = {
    method.name: method
    for method in (Automatic(), Certified(), Stationarity(), RiskTested(), Doubling(), Theory(), Fixed())
}

__all__ = ["METHODS", "DoublingPlan", "Method", "doubling_search"]
